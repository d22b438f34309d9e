"use strict";
// Narrows the tables of the index down. Without it the page shows everything.
(function () {
  const form = document.getElementById("search");
  const fields = ["words", "suite", "topic", "verdict"].map((id) => document.getElementById(id));
  const [words, suite, topic, verdict] = fields;
  const count = document.getElementById("count");
  const rows = Array.from(document.querySelectorAll("tr[data-words]"));
  const sections = Array.from(document.querySelectorAll("section.suite"));
  function narrow() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const data = row.dataset;
      const fits =
        wanted.every((word) => data.words.includes(word)) &&
        (!suite.value || data.suite === suite.value) &&
        (!topic.value || data.topics.split("|").includes(topic.value)) &&
        (!verdict.value || data.verdict === verdict.value);
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    for (const section of sections) section.hidden = !section.querySelector("tr[data-words]:not([hidden])");
    count.textContent = shown + (shown === 1 ? " page" : " pages");
  }
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const field of fields) field.addEventListener("input", narrow);
  narrow();
})();
