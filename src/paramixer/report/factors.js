"use strict";
// The factors of a block, and vectors sent through them. A row of A is a unit vector sent back, last factor first; a
// column is one sent forth. Either takes as many products as the factors have entries.
const factors = (() => {
  const decoded = (block, length) => {
    const letters = atob(block.entries);
    const entries = new Int8Array(letters.length);
    for (let i = 0; i < letters.length; i++) entries[i] = letters.charCodeAt(i);
    return { ...block, length, entries };
  };
  const entry = (block, factor, place, link) => {
    const links = block.offsets[factor].length;
    return block.entries[(factor * block.length + place) * links + link] * block.scales[factor][link];
  };
  // Where a place lies on the ring, or -1 outside a line.
  const wrapped = (block, place) => {
    if (!block.ring) return place >= 0 && place < block.length ? place : -1;
    return ((place % block.length) + block.length) % block.length;
  };

  // One factor applied to a vector, from the left (rows) or from the right (columns), without its residual.
  const applied = (block, factor, vector, rows) => {
    const { length, entries, ring } = block;
    const offsets = block.offsets[factor];
    const links = offsets.length;
    const found = new Float64Array(length);
    offsets.forEach((offset, link) => {
      const scale = block.scales[factor][link];
      const shift = ((offset % length) + length) % length;
      const first = ring ? 0 : Math.max(0, -offset);
      const last = ring ? length : Math.min(length, length - offset);
      let at = (factor * length + first) * links + link;
      for (let place = first; place < last; place++, at += links) {
        const weight = entries[at] * scale;
        const there = place + shift < length ? place + shift : place + shift - length;
        if (rows) found[there] += vector[place] * weight;
        else found[place] += weight * vector[there];
      }
    });
    return found;
  };

  // All stages from a vector to its product with the block's matrix.
  const stages = (block, start, rows) => {
    const found = [start];
    const count = block.offsets.length;
    let vector = start;
    let sum = Float64Array.from(start);
    for (let step = 0; step < count; step++) {
      const next = applied(block, rows ? count - 1 - step : step, vector, rows);
      if (block.residual === "factor") for (let i = 0; i < next.length; i++) next[i] += vector[i];
      if (block.residual === "block" && !rows) for (let i = 0; i < next.length; i++) next[i] += start[i];
      if (block.residual === "block" && rows) {
        sum = Float64Array.from(sum, (value, i) => value + next[i]);
        found.push(sum);
      } else {
        found.push(next);
      }
      vector = next;
    }
    return found;
  };

  return { decoded, entry, wrapped, stages };
})();
