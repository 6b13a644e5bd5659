// Canvas drawings of the explorer: bars, strips, and a map over an image.
const drawing = (() => {
  const SMALLEST = 1e-300;
  const findLargest = (values) => values.reduce((largest, value) => Math.max(largest, Math.abs(value)), SMALLEST);

  // Colors of the page's theme.
  const readColors = () => {
    const style = getComputedStyle(document.documentElement);
    const names = { warm: "--warm", cool: "--cool", line: "--faint", mark: "--mark", ink: "--ink" };
    return Object.fromEntries(Object.entries(names).map(([key, name]) => [key, style.getPropertyValue(name).trim()]));
  };

  // Red, green and blue of #rrggbb.
  const parseColor = (color) => [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16));

  // Fits the canvas to its size on the screen; a canvas without a height is square.
  const prepareCanvas = (canvas, fixedHeight) => {
    const ratio = devicePixelRatio || 1;
    const width = Math.max(1, canvas.clientWidth);
    const height = fixedHeight ?? width;
    if (fixedHeight !== undefined) canvas.style.height = `${fixedHeight}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    return [context, width, height];
  };

  // The value of largest magnitude among the positions of each pixel column.
  const poolByMagnitude = (values, width) => {
    const columns = Math.min(values.length, Math.floor(width));
    const pooled = new Float64Array(columns);
    for (let column = 0, position = 0; column < columns; column++) {
      const stop = Math.floor(((column + 1) * values.length) / columns);
      let largest = 0;
      for (; position < stop; position++) if (Math.abs(values[position]) > Math.abs(largest)) largest = values[position];
      pooled[column] = largest;
    }
    return pooled;
  };

  // Lowest and highest number of each feature in each pixel column, scaled to 0..1; cached in the sequence.
  const computeEnvelopes = (sequence, columns) => {
    if (sequence.columns !== columns) {
      sequence.columns = columns;
      sequence.envelopes = sequence.view.numbers.map((row) => {
        const lowest = row.reduce((low, value) => Math.min(low, value), Infinity);
        const range = row.reduce((high, value) => Math.max(high, value), -Infinity) - lowest || 1;
        const lows = new Array(columns).fill(Infinity), highs = new Array(columns).fill(-Infinity);
        row.forEach((value, position) => {
          const column = Math.floor((position * columns) / row.length);
          const scaled = (value - lowest) / range;
          lows[column] = Math.min(lows[column], scaled);
          highs[column] = Math.max(highs[column], scaled);
        });
        return [lows, highs];
      });
    }
    return sequence.envelopes;
  };

  const drawCurve = (context, sequence, columns, columnWidth, height, color) => {
    context.globalAlpha = 0.45;
    context.strokeStyle = color;
    for (const [lows, highs] of computeEnvelopes(sequence, columns)) {
      context.beginPath();
      lows.forEach((low, column) => {
        context.lineTo((column + 0.5) * columnWidth, height - 2 - highs[column] * (height - 4));
        if (low !== highs[column]) context.lineTo((column + 0.5) * columnWidth, height - 2 - low * (height - 4));
      });
      context.stroke();
    }
    context.globalAlpha = 1;
  };

  // The values of all positions as bars, over the curve of a numeric sequence.
  const drawBars = (canvas, sequence, values, selected, colors) => {
    const [context, width, height] = prepareCanvas(canvas, 130);
    const columns = poolByMagnitude(values, width);
    const columnWidth = width / columns.length;
    const largest = findLargest(columns);
    const baseline = columns.some((value) => value < 0) ? height / 2 : height - 1;
    const tallest = baseline === height / 2 ? baseline - 2 : height - 3;
    const view = sequence.view;
    if (view.kind === "curve") drawCurve(context, sequence, columns.length, columnWidth, height, colors.line);
    context.fillStyle = colors.mark;
    context.globalAlpha = 0.5;
    context.fillRect((selected * width) / values.length - 1, 0, Math.max(3, width / values.length), height);
    context.globalAlpha = 1;
    columns.forEach((value, column) => {
      context.fillStyle = value < 0 ? colors.cool : colors.warm;
      // Square root: with a residual the diagonal of A dwarfs the rest of its row.
      const size = Math.sqrt(Math.abs(value) / largest) * tallest;
      const top = value < 0 ? baseline : baseline - size;
      context.fillRect(column * columnWidth, top, Math.max(1, columnWidth - (columnWidth > 3 ? 1 : 0)), size);
    });
    context.fillStyle = colors.line;
    context.fillRect(0, baseline, width, 1);
    if (columnWidth > 9 && view.symbols && values.length === columns.length) {
      context.fillStyle = colors.ink;
      context.font = "11px monospace";
      context.textAlign = "center";
      view.symbols.forEach((symbol, position) => {
        if (symbol.length < 3) context.fillText(symbol, (position + 0.5) * columnWidth, 11);
      });
    }
  };

  // One strip per stage, the unit vector on top.
  const drawStrips = (canvas, stages, colors) => {
    const stripHeight = stages.length > 12 ? 9 : 13;
    const [context, width] = prepareCanvas(canvas, stripHeight * stages.length);
    const strips = stages.map((values) => poolByMagnitude(values, width));
    const columns = strips[0].length;
    // One pixel per column and stage, stretched afterwards: thousands of rectangles would be slower.
    const image = new ImageData(columns, strips.length);
    const tones = { warm: parseColor(colors.warm), cool: parseColor(colors.cool) };
    strips.forEach((values, stage) => {
      const largest = findLargest(values);
      values.forEach((value, column) => {
        if (value === 0) return;
        const pixel = 4 * (stage * columns + column);
        image.data.set(value < 0 ? tones.cool : tones.warm, pixel);
        image.data[pixel + 3] = 255 * Math.max(0.06, Math.sqrt(Math.abs(value) / largest));
      });
    });
    const small = new OffscreenCanvas(columns, strips.length);
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, width, stripHeight * strips.length);
  };

  // The values over the gray image of the input, with a frame around the selected position.
  const drawImage = (canvas, view, values, selected, colors) => {
    const [context, width] = prepareCanvas(canvas);
    const cell = width / view.side;
    const largest = findLargest(values);
    view.pixels.forEach((gray, position) => {
      const x = (position % view.side) * cell, y = Math.floor(position / view.side) * cell;
      context.globalAlpha = 1;
      context.fillStyle = `rgb(${gray},${gray},${gray})`;
      context.fillRect(x, y, cell + 0.5, cell + 0.5);
      context.globalAlpha = 0.75 * Math.sqrt(Math.abs(values[position]) / largest);
      context.fillStyle = values[position] < 0 ? colors.cool : colors.warm;
      context.fillRect(x, y, cell + 0.5, cell + 0.5);
    });
    context.globalAlpha = 1;
    context.strokeStyle = colors.mark;
    context.lineWidth = 2;
    context.strokeRect((selected % view.side) * cell, Math.floor(selected / view.side) * cell, cell, cell);
  };

  return { SMALLEST, readColors, drawBars, drawStrips, drawImage };
})();
