// Before the first paint, so that nothing flashes in the wrong colours.
try {
  const chosen = localStorage.getItem("millrace.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then the system's choice stands.
}
