// The explorer: one row or column of the mixing matrix, or the attribution, computed for the selected position.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const createElement = (tag, fields = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), fields);
    element.append(...children);
    return element;
  };
  const createOptions = (options) => options.map(([value, text]) => createElement("option", { value, textContent: text }));
  const formatNumber = (number) => (number === 0 ? "0" : Math.abs(number) >= 1000 || Math.abs(number) < 0.001
    ? number.toExponential(1) : String(Number(number.toPrecision(3))));

  class Explorer {
    constructor(root, sequences) {
      this.root = root;
      this.sequences = sequences;
      this.number = 0;
      this.position = 0;
      this.createElements();
      this.listen();
      this.selectSequence(0);
      new ResizeObserver(() => this.draw()).observe(root);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    get sequence() { return this.sequences[this.number]; }

    get showsMatrix() { return this.mapSelect.value === "rows" || this.mapSelect.value === "columns"; }

    createElements() {
      this.root.replaceChildren();
      const createLabel = (text, element) => createElement("label", {}, text, element);
      this.sequenceSelect = createElement("select");
      this.sequenceSelect.append(...createOptions(this.sequences.map((sequence, number) => [number, sequence.title.split(": prediction ")[0]])));
      this.mapSelect = createElement("select");
      this.blockSelect = createElement("select");
      this.positionInput = createElement("input", { type: "number", min: 0 });
      this.controls = createElement("div", { className: "controls" }, createLabel("sequence", this.sequenceSelect),
        createLabel("map", this.mapSelect), createLabel("chain", this.blockSelect), createLabel("position", this.positionInput));
      this.name = createElement("p", { className: "name" });
      this.image = createElement("canvas");
      this.image.setAttribute("aria-hidden", "true");
      this.imageBox = createElement("div", { className: "scene" }, this.image);
      this.bars = createElement("canvas", { tabIndex: 0 });
      this.bars.setAttribute("role", "slider");
      this.bars.setAttribute("aria-label", "Position in the sequence; arrow keys move it");
      this.strips = createElement("canvas");
      this.strips.setAttribute("aria-hidden", "true");
      this.axis = createElement("div", { className: "axis" });
      this.legend = createElement("p", { className: "legend" });
      this.output = createElement("output");
      this.output.setAttribute("aria-live", "polite");
      this.letters = createElement("p", { className: "letters", dir: "ltr" });
      this.links = createElement("div");
      this.links.setAttribute("role", "region");
      this.links.setAttribute("aria-label", "Links of the position in each factor");
      const right = createElement("div", {}, this.bars, this.axis, this.strips, this.legend, this.output, this.letters, this.links);
      this.root.append(this.controls, this.name, createElement("div", { className: "stage" }, this.imageBox, right));
    }

    listen() {
      this.sequenceSelect.onchange = () => this.selectSequence(Number(this.sequenceSelect.value));
      this.mapSelect.onchange = this.blockSelect.onchange = () => this.update();
      this.positionInput.oninput = () => this.selectPosition(Number(this.positionInput.value));
      this.positionInput.onblur = () => { this.positionInput.value = this.position; };
      for (const canvas of [this.bars, this.strips]) {
        canvas.onpointermove = canvas.onpointerdown = (event) => {
          const box = canvas.getBoundingClientRect();
          this.selectPosition(Math.floor(((event.clientX - box.left) / box.width) * this.length));
        };
      }
      this.image.onpointermove = this.image.onpointerdown = (event) => {
        const box = this.image.getBoundingClientRect();
        const side = this.sequence.view.side;
        const findCell = (offset, size) => Math.min(side - 1, Math.max(0, Math.floor((offset / size) * side)));
        const row = findCell(event.clientY - box.top, box.height);
        this.selectPosition(row * side + findCell(event.clientX - box.left, box.width));
      };
      this.bars.onkeydown = (event) => {
        // In an image, up and down move by rows; elsewhere, up moves forward, as in every slider.
        const side = this.sequence.view.side;
        const up = side ? -side : Math.max(1, Math.round(this.length / 32));
        const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: up, ArrowDown: -up, PageUp: 4 * up, PageDown: -4 * up,
          Home: -this.position, End: this.length - 1 - this.position };
        if (!(event.key in steps)) return;
        event.preventDefault();
        this.selectPosition(this.position + steps[event.key]);
      };
      this.letters.onclick = (event) => {
        if (event.target.dataset.position) this.selectPosition(Number(event.target.dataset.position));
      };
    }

    selectSequence(number) {
      this.number = number;
      const sequence = this.sequence;
      this.name.textContent = sequence.title;
      this.length = sequence.length;
      sequence.decoded ??= sequence.blocks.map((block) => factors.decode(block, sequence.length));
      this.blocks = sequence.decoded;
      const maps = this.blocks.length
        ? [["rows", "row of the mixing matrix A"], ["columns", "column of the mixing matrix A"]] : [];
      maps.push(["evidence", "gradient x input"], ["occlusion", "occlusion"]);
      const selected = this.mapSelect.value;
      this.mapSelect.replaceChildren(...createOptions(maps));
      if (maps.some(([value]) => value === selected)) this.mapSelect.value = selected;
      const blocks = this.blocks.map((block, index) => [index, block.name]);
      if (this.blocks.length > 1 && this.blocks.every((block) => block.name.startsWith("block")) && !sequence.omitted_blocks) blocks.push(["all", "all blocks (rollout)"]);
      this.blockSelect.replaceChildren(...createOptions(blocks));
      this.blockSelect.parentElement.hidden = blocks.length < 2;
      this.sequenceSelect.parentElement.hidden = this.sequences.length < 2;
      this.positionInput.max = this.length - 1;
      this.isImage = sequence.view.kind === "image";
      this.root.classList.toggle("pictured", this.isImage);
      this.imageBox.hidden = !this.isImage;
      this.axis.replaceChildren(createElement("span", { textContent: "0" }), createElement("span", { textContent: this.length - 1 }));
      this.selectPosition(Math.min(sequence.start, this.length - 1), true);
    }

    selectPosition(position, always = false) {
      const inside = Math.min(this.length - 1, Math.max(0, Math.floor(position) || 0));
      if (inside === this.position && !always) return;
      this.position = inside;
      this.update();
    }

    update() {
      if (document.activeElement !== this.positionInput) this.positionInput.value = this.position;
      this.stages = this.showsMatrix ? this.computeStages() : [Float64Array.from(this.sequence[this.mapSelect.value])];
      this.values = this.stages[this.stages.length - 1];
      this.updateSummary();
      this.updateLetters();
      this.updateLinks();
      this.draw();
      this.root.dataset.position = this.position;
    }

    // The unit vector of the position and its products: with each factor of a block, or with each block (rollout).
    computeStages() {
      const rows = this.mapSelect.value === "rows";
      let vector = new Float64Array(this.length);
      vector[this.position] = 1;
      if (this.blockSelect.value !== "all") {
        return factors.computeStages(this.blocks[Number(this.blockSelect.value)], vector, rows);
      }
      const stages = [vector];
      for (const block of rows ? [...this.blocks].reverse() : this.blocks) {
        vector = factors.computeStages(block, vector, rows).at(-1);
        stages.push(vector);
      }
      return stages;
    }

    describeInput(position) {
      const view = this.sequence.view;
      if (view.kind === "image") return `pixel ${Math.floor(position / view.side)}, ${position % view.side}, value ${view.pixels[position]}`;
      if (view.kind === "curve") return view.numbers.map((row) => formatNumber(row[position])).join(", ");
      return `“${view.symbols[position]}”`;
    }

    findLargest(count) {
      const largest = [];
      for (let position = 0; position < this.length; position++) {
        const size = Math.abs(this.values[position]);
        if (largest.length < count || size > largest[largest.length - 1][1]) {
          largest.push([position, size]);
          largest.sort((one, other) => other[1] - one[1]);
          largest.length = Math.min(largest.length, count);
        }
      }
      return largest.filter(([, size]) => size > 0).map(([position]) => position);
    }

    updateSummary() {
      const value = formatNumber(this.values[this.position]);
      const phrases = { rows: "largest entries of its row of A", columns: "largest entries of its column of A",
        evidence: `gradient x input ${value}; largest`, occlusion: `occlusion ${value}; largest` };
      const describe = (position) => `${position} (${this.describeInput(position)})`;
      const peaks = this.findLargest(5).map((position) => `${formatNumber(this.values[position])} at ${describe(position)}`);
      const text = `Position ${describe(this.position)}: ${phrases[this.mapSelect.value]}: ${peaks.join("; ") || "none"}.`;
      this.output.textContent = text;
      this.bars.setAttribute("aria-valuemin", 0);
      this.bars.setAttribute("aria-valuemax", this.length - 1);
      this.bars.setAttribute("aria-valuenow", this.position);
      this.bars.setAttribute("aria-valuetext", text);
    }

    updateLetters() {
      const view = this.sequence.view;
      this.letters.hidden = !view.symbols;
      if (!view.symbols) return;
      const words = view.kind === "words";
      const around = words ? 40 : 120;
      const first = Math.max(0, Math.min(this.position - around, this.length - 2 * around));
      const last = Math.min(this.length, first + 2 * around);
      let largest = drawing.SMALLEST;
      for (let position = first; position < last; position++) largest = Math.max(largest, Math.abs(this.values[position]));
      const spans = [];
      for (let position = first; position < last; position++) {
        const value = this.values[position];
        const share = Math.round((45 * Math.abs(value)) / largest);
        const span = createElement("span", { textContent: view.symbols[position], title: `${position}: ${formatNumber(value)}` });
        span.dataset.position = position;
        span.style.background = `color-mix(in srgb, var(${value < 0 ? "--cool" : "--warm"}) ${share}%, transparent)`;
        if (position === this.position) span.className = "here";
        spans.push(span);
        if (words) spans.push(" ");
      }
      this.letters.replaceChildren(first ? "… " : "", ...spans, last < this.length ? " …" : "");
    }

    updateLinks() {
      const block = this.blocks[Number(this.blockSelect.value)];
      this.links.hidden = !block || !this.showsMatrix;
      if (this.links.hidden) return;
      const rows = this.mapSelect.value === "rows";
      const body = createElement("tbody");
      block.offsets.forEach((offsets, factor) => {
        const line = createElement("tr", {}, createElement("th", { scope: "row", textContent: `factor ${factor + 1}` }));
        // Rows: links from this position. Columns: links from other positions to this one.
        const linked = offsets.map((offset) => factors.wrap(block, this.position + (rows ? offset : -offset)));
        const weights = linked.map((other, link) => (other < 0 ? 0 : factors.getEntry(block, factor, rows ? this.position : other, link)));
        const largest = Math.max(drawing.SMALLEST, ...weights.map(Math.abs));
        weights.forEach((weight, link) => {
          const other = linked[link];
          const cell = createElement("td", { title: `link ${link}`, textContent: other < 0 ? "outside" : `${other}: ${formatNumber(weight)}` });
          cell.style.setProperty("--share", Math.abs(weight) / largest);
          cell.style.setProperty("--tone", `var(${weight < 0 ? "--cool" : "--warm"})`);
          line.append(cell);
        });
        body.append(line);
      });
      const caption = createElement("caption", { textContent: rows
        ? `Row ${this.position} of each factor, without the residual`
        : `Column ${this.position} of each factor, without the residual` });
      this.links.replaceChildren(createElement("table", { className: "links" }, caption, body));
    }

    updateLegend() {
      const last = this.stages.length - 1;
      this.strips.hidden = this.legend.hidden = !last;
      const [first, final] = this.mapSelect.value === "rows" ? [last, 1] : [1, last];
      const step = this.blockSelect.value === "all" ? "block" : "factor";
      this.legend.textContent = `Strips: the unit vector of the position, then its product with ${step} ${first}`
        + (last > 1 ? `, and so on to ${step} ${final}.` : ".");
    }

    draw() {
      if (!this.values) return;
      const colors = drawing.readColors();
      drawing.drawBars(this.bars, this.sequence, this.values, this.position, colors);
      this.updateLegend();
      if (!this.strips.hidden) drawing.drawStrips(this.strips, this.stages, colors);
      if (this.isImage) drawing.drawImage(this.image, this.sequence.view, this.values, this.position, colors);
    }
  }

  for (const root of document.querySelectorAll(".explorer")) {
    const sequences = data.runs[Number(root.dataset.run)].explorers;
    root.explorer = new Explorer(root, sequences);
    root.dataset.ready = "true";
  }
})();
