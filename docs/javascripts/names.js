/* Names for parts of the theme that screen readers would find nameless, or two of one name. */
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
for (const part of document.querySelectorAll(".md-nav .md-nav[aria-labelledby]")) {
  const label = document.getElementById(part.getAttribute("aria-labelledby"));
  part.setAttribute("aria-label", `Pages: ${label ? label.textContent.trim() : part.textContent.trim().slice(0, 30)}`);
  part.removeAttribute("aria-labelledby");
}
new MutationObserver(() => document.querySelectorAll(".md-code__nav:not([role])").forEach(part => part.setAttribute("role", "group")))
  .observe(document.body, {childList: true, subtree: true}); // one for each block of code, as it comes into view
