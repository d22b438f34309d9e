"use strict";
// Links to a line of the source open the folded listing that holds it.
(function () {
  function open() {
    const id = decodeURIComponent(window.location.hash.slice(1));
    const target = id && document.getElementById(id);
    const folded = target && target.closest("details");
    if (folded) {
      folded.open = true;
      target.scrollIntoView();
    }
  }
  window.addEventListener("hashchange", open);
  open();
})();
