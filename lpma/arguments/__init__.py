"""What callers give, admitted: columns, single values, times, Arrow's columns."""
