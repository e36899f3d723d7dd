// Runs before the page is drawn: the theme somebody chose must be there from the first paint on.
"use strict";
try {
  const theme = localStorage.getItem("lpma-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's theme.
}
