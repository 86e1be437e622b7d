// Light or dark before the first picture: the person's choice, else the system's.
"use strict";
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("motley.theme");
    } catch {
      // Without storage the system decides.
      return null;
    }
  };
  const apply = () => {
    document.documentElement.dataset.theme = chosen() || (system.matches ? "dark" : "light");
  };
  system.addEventListener("change", apply);
  addEventListener("themechange", apply);
  apply();
})();
