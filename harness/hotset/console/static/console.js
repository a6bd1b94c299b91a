// Every page: the figure beside a slider follows it.
"use strict";

document.addEventListener("input", (event) => {
  const output = document.querySelector(`output[for="${event.target.id}"]`);
  if (output) output.value = event.target.value + (output.dataset.unit ?? "");
});
