// Runs before the page is drawn. The theme somebody chose must be there from the first paint on, and
// Bokeh's <style> elements get the nonce of this page (see page.py), since its policy forbids others.
"use strict";
try {
  const theme = localStorage.getItem("lpma-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's theme.
}
{
  const { nonce } = document.querySelector("link[nonce]");
  const create = document.createElement.bind(document);
  document.createElement = (name, options) => {
    const element = create(name, options);
    if (name === "style") element.nonce = nonce;
    return element;
  };
}
