"use strict";
// Before anything is drawn, so that a dark page never flashes white.
try {
  const theme = localStorage.getItem("packhorse.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* a browser that keeps nothing follows the system */ }
document.documentElement.classList.add("scripts");
