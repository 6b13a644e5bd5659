"use strict";
// The factors of a block and their products with vectors. A row of A is a unit vector multiplied from the left, last
// factor first; a column is a unit vector multiplied from the right. Either costs one product per entry of the factors.
const factors = (() => {
  const decode = (block, length) => {
    const letters = atob(block.entries);
    const entries = new Int8Array(letters.length);
    for (let i = 0; i < letters.length; i++) entries[i] = letters.charCodeAt(i);
    return { ...block, length, entries };
  };
  const getEntry = (block, factor, position, link) => {
    const links = block.offsets[factor].length;
    return block.entries[(factor * block.length + position) * links + link] * block.scales[factor][link];
  };
  // The position on the ring; without a ring, -1 for a position outside the sequence.
  const wrap = (block, position) => {
    if (!block.ring) return position >= 0 && position < block.length ? position : -1;
    return ((position % block.length) + block.length) % block.length;
  };

  // The product of one factor, without its residual, and a vector: from the left (rows) or from the right (columns).
  const multiply = (block, factor, vector, rows) => {
    const { length, entries, ring } = block;
    const offsets = block.offsets[factor];
    const links = offsets.length;
    const product = new Float64Array(length);
    offsets.forEach((offset, link) => {
      const scale = block.scales[factor][link];
      const shift = ((offset % length) + length) % length;
      const first = ring ? 0 : Math.max(0, -offset);
      const last = ring ? length : Math.min(length, length - offset);
      let index = (factor * length + first) * links + link;
      for (let position = first; position < last; position++, index += links) {
        const weight = entries[index] * scale;
        const linked = position + shift < length ? position + shift : position + shift - length;
        if (rows) product[linked] += vector[position] * weight;
        else product[position] += weight * vector[linked];
      }
    });
    return product;
  };

  // The vector and its product after each factor; the last one is the product with the block's matrix.
  const computeStages = (block, start, rows) => {
    const stages = [start];
    const count = block.offsets.length;
    let vector = start;
    let sum = Float64Array.from(start);
    for (let step = 0; step < count; step++) {
      const next = multiply(block, rows ? count - 1 - step : step, vector, rows);
      if (block.residual === "factor") for (let i = 0; i < next.length; i++) next[i] += vector[i];
      if (block.residual === "block" && !rows) for (let i = 0; i < next.length; i++) next[i] += start[i];
      if (block.residual === "block" && rows) {
        sum = Float64Array.from(sum, (value, i) => value + next[i]);
        stages.push(sum);
      } else {
        stages.push(next);
      }
      vector = next;
    }
    return stages;
  };

  return { decode, getEntry, wrap, computeStages };
})();
