// The mixing map explorer: what feeds a position, or what it feeds, made anew for every position asked for.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const make = (tag, fields = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), fields);
    element.append(...children);
    return element;
  };
  const brief = (number) => (number === 0 ? "0" : Math.abs(number) >= 1000 || Math.abs(number) < 0.001
    ? number.toExponential(1) : String(Number(number.toPrecision(3))));

  // Red, green and blue of #rrggbb.
  const bytes = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

  class Explorer {
    constructor(root, sequences) {
      this.root = root;
      this.sequences = sequences;
      this.number = 0;
      this.place = 0;
      this.build();
      this.choose(0);
      new ResizeObserver(() => this.draw()).observe(root);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    get sequence() { return this.sequences[this.number]; }

    build() {
      this.root.replaceChildren();
      const named = (text, element) => make("label", {}, text, element);
      this.which = make("select");
      this.sequences.forEach((one, number) => this.which.append(make("option", { value: number, textContent: one.title })));
      this.what = make("select");
      this.block = make("select");
      this.at = make("input", { type: "number", min: 0 });
      this.controls = make("div", { className: "controls" }, named("sequence", this.which), named("show", this.what),
        named("block", this.block), named("position", this.at));
      this.scene = make("canvas");
      this.scenes = make("div", { className: "scene" }, this.scene);
      this.map = make("canvas", { tabIndex: 0 });
      this.map.setAttribute("role", "slider");
      this.map.setAttribute("aria-label", "Position in the sequence; arrow keys move it");
      this.lanes = make("canvas");
      this.lanes.setAttribute("aria-hidden", "true");
      this.scene.setAttribute("aria-hidden", "true");
      this.ends = make("div", { className: "axis" });
      this.legend = make("p", { className: "legend" });
      this.output = make("output");
      this.output.setAttribute("aria-live", "polite");
      this.letters = make("p", { className: "letters", dir: "ltr" });
      this.links = make("div", { className: "wide", tabIndex: 0 });
      this.links.setAttribute("role", "region");
      this.links.setAttribute("aria-label", "Links of the position, factor by factor");
      const right = make("div", {}, this.map, this.ends, this.lanes, this.legend, this.output, this.letters, this.links);
      this.root.append(this.controls, make("div", { className: "stage" }, this.scenes, right));

      this.which.onchange = () => this.choose(Number(this.which.value));
      this.what.onchange = this.block.onchange = () => this.show();
      this.at.oninput = () => this.go(Number(this.at.value));
      this.at.onblur = () => { this.at.value = this.place; };
      for (const canvas of [this.map, this.lanes]) {
        canvas.onpointermove = canvas.onpointerdown = (event) => {
          const box = canvas.getBoundingClientRect();
          this.go(Math.floor(((event.clientX - box.left) / box.width) * this.length));
        };
      }
      this.scene.onpointermove = this.scene.onpointerdown = (event) => {
        const box = this.scene.getBoundingClientRect();
        const side = this.sequence.look.side;
        const cell = (value, size) => Math.min(side - 1, Math.max(0, Math.floor((value / size) * side)));
        this.go(cell(event.clientY - box.top, box.height) * side + cell(event.clientX - box.left, box.width));
      };
      this.map.onkeydown = (event) => {
        // In a picture up and down are rows; elsewhere up is forwards, as in every slider.
        const row = this.sequence.look.side;
        const up = row ? -row : Math.max(1, Math.round(this.length / 32));
        const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: up, ArrowDown: -up, PageUp: 4 * up, PageDown: -4 * up,
          Home: -this.place, End: this.length - 1 - this.place };
        if (!(event.key in steps)) return;
        event.preventDefault();
        this.go(this.place + steps[event.key]);
      };
      this.letters.onclick = (event) => {
        if (event.target.dataset.place) this.go(Number(event.target.dataset.place));
      };
    }

    choose(number) {
      this.number = number;
      const sequence = this.sequence;
      this.length = sequence.length;
      sequence.decoded ??= sequence.blocks.map((block) => factors.decoded(block, sequence.length));
      this.blocks = sequence.decoded;
      const options = this.blocks.length
        ? [["rows", "what feeds the position"], ["columns", "what the position feeds"]] : [];
      options.push(["evidence", "evidence for the answer"], ["occlusion", "evidence by blotting out"]);
      const kept = this.what.value;
      this.what.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
      if (options.some(([value]) => value === kept)) this.what.value = kept;
      const names = this.blocks.map((_, index) => [index, `block ${index + 1}`]);
      if (this.blocks.length > 1 && !sequence.left_out) names.push(["all", "all blocks (rollout)"]);
      this.block.replaceChildren(...names.map(([value, text]) => make("option", { value, textContent: text })));
      this.block.parentElement.hidden = names.length < 2;
      this.which.parentElement.hidden = this.sequences.length < 2;
      this.at.max = this.length - 1;
      this.pictured = sequence.look.kind === "image";
      this.root.classList.toggle("pictured", this.pictured);
      this.scenes.hidden = !this.pictured;
      this.ends.replaceChildren(make("span", { textContent: "0" }), make("span", { textContent: this.length - 1 }));
      this.go(Math.min(sequence.start, this.length - 1), true);
    }

    go(place, always = false) {
      const inside = Math.min(this.length - 1, Math.max(0, Math.floor(place) || 0));
      if (inside === this.place && !always) return;
      this.place = inside;
      this.show();
    }

    show() {
      const what = this.what.value;
      if (document.activeElement !== this.at) this.at.value = this.place;
      if (what === "evidence" || what === "occlusion") {
        this.stages = [Float64Array.from(this.sequence[what])];
      } else {
        const rows = what === "rows";
        let vector = new Float64Array(this.length);
        vector[this.place] = 1;
        if (this.block.value === "all") {
          this.stages = [vector];
          const order = rows ? [...this.blocks].reverse() : this.blocks;
          for (const block of order) {
            const found = factors.stages(block, vector, rows);
            vector = found[found.length - 1];
            this.stages.push(vector);
          }
        } else {
          this.stages = factors.stages(this.blocks[Number(this.block.value)], vector, rows);
        }
      }
      this.values = this.stages[this.stages.length - 1];
      this.tell();
      this.spell();
      this.table();
      this.draw();
      this.root.dataset.place = this.place;
    }

    symbol(place) {
      const look = this.sequence.look;
      if (look.kind === "image") return `pixel ${Math.floor(place / look.side)}, ${place % look.side}, value ${look.pixels[place]}`;
      if (look.kind === "curve") return look.numbers.map((row) => brief(row[place])).join(", ");
      return `“${look.symbols[place]}”`;
    }

    strongest(count) {
      const found = [];
      for (let place = 0; place < this.length; place++) {
        const size = Math.abs(this.values[place]);
        if (found.length < count || size > found[found.length - 1][1]) {
          found.push([place, size]);
          found.sort((one, other) => other[1] - one[1]);
          found.length = Math.min(found.length, count);
        }
      }
      return found.filter(([, size]) => size > 0).map(([place]) => place);
    }

    tell() {
      const own = brief(this.values[this.place]);
      const verbs = { rows: " is fed most by", columns: " feeds most", evidence: `: ${own}; the strongest evidence is at`,
        occlusion: `: ${own}; blotting out changes most at` };
      const named = (place) => `${place} (${this.symbol(place)})`;
      const peaks = this.strongest(5).map((place) => `${named(place)} with ${brief(this.values[place])}`);
      const text = `Position ${named(this.place)}${verbs[this.what.value]} ${peaks.join("; ") || "nothing"}.`;
      this.output.textContent = text;
      this.map.setAttribute("aria-valuemin", 0);
      this.map.setAttribute("aria-valuemax", this.length - 1);
      this.map.setAttribute("aria-valuenow", this.place);
      this.map.setAttribute("aria-valuetext", text);
    }

    spell() {
      const look = this.sequence.look;
      this.letters.hidden = !look.symbols;
      if (!look.symbols) return;
      const words = look.kind === "words";
      const around = words ? 40 : 120;
      const first = Math.max(0, Math.min(this.place - around, this.length - 2 * around));
      const last = Math.min(this.length, first + 2 * around);
      let most = 1e-300;
      for (let place = first; place < last; place++) most = Math.max(most, Math.abs(this.values[place]));
      const spans = [];
      for (let place = first; place < last; place++) {
        const share = Math.round((45 * Math.abs(this.values[place])) / most);
        const tone = this.values[place] < 0 ? "--cool" : "--warm";
        const span = make("span", { textContent: look.symbols[place], title: `${place}: ${brief(this.values[place])}` });
        span.dataset.place = place;
        span.style.background = `color-mix(in srgb, var(${tone}) ${share}%, transparent)`;
        if (place === this.place) span.className = "here";
        spans.push(span);
        if (words) spans.push(" ");
      }
      this.letters.replaceChildren(first ? "… " : "", ...spans, last < this.length ? " …" : "");
    }

    table() {
      const block = this.blocks[Number(this.block.value)];
      const mixing = this.what.value === "rows" || this.what.value === "columns";
      this.links.hidden = !block || !mixing;
      if (this.links.hidden) return;
      const count = Math.max(...block.offsets.map((row) => row.length));
      const rows = this.what.value === "rows";
      const head = make("tr", {}, make("td"));
      for (let link = 0; link < count; link++) head.append(make("th", { scope: "col", textContent: `link ${link}` }));
      const body = make("tbody");
      block.offsets.forEach((offsets, factor) => {
        const line = make("tr", {}, make("th", { scope: "row", textContent: `factor ${factor + 1}` }));
        // Rows: the links that the position writes. Columns: those that others write to it.
        const places = offsets.map((offset) => factors.wrapped(block, this.place + (rows ? offset : -offset)));
        const weights = places.map((there, link) => (there < 0 ? 0 : factors.entry(block, factor, rows ? this.place : there, link)));
        const most = Math.max(1e-300, ...weights.map(Math.abs));
        weights.forEach((weight, link) => {
          const there = places[link];
          const cell = make("td", { textContent: there < 0 ? "outside" : `${rows ? "from" : "to"} ${there}: ${brief(weight)}` });
          cell.style.setProperty("--share", Math.abs(weight) / most);
          cell.style.setProperty("--tone", `var(${weight < 0 ? "--cool" : "--warm"})`);
          line.append(cell);
        });
        body.append(line);
      });
      const caption = make("caption", { textContent: rows
        ? `The links that position ${this.place} writes, without the residual`
        : `The links that others write to position ${this.place}, without the residual` });
      this.links.replaceChildren(make("table", { className: "links" }, caption, make("thead", {}, head), body));
    }

    canvas(element, height) {
      const ratio = devicePixelRatio || 1;
      const width = Math.max(1, element.clientWidth);
      const tall = height ?? width;
      if (height !== undefined) element.style.height = `${height}px`;
      element.width = Math.round(width * ratio);
      element.height = Math.round(tall * ratio);
      const pen = element.getContext("2d");
      pen.scale(ratio, ratio);
      return [pen, width, tall];
    }

    // The largest value, by size, among the positions of every column of pixels.
    pooled(values, width) {
      const columns = Math.min(this.length, Math.floor(width));
      const found = new Float64Array(columns);
      for (let column = 0, place = 0; column < columns; column++) {
        const stop = Math.floor(((column + 1) * this.length) / columns);
        let best = 0;
        for (; place < stop; place++) if (Math.abs(values[place]) > Math.abs(best)) best = values[place];
        found[column] = best;
      }
      return found;
    }

    // Lowest and highest number of every feature in every column of pixels, from 0 to 1; the same for every position.
    envelopes(columns) {
      const sequence = this.sequence;
      if (sequence.columns !== columns) {
        sequence.columns = columns;
        sequence.envelopes = sequence.look.numbers.map((row) => {
          const low = row.reduce((best, value) => Math.min(best, value), Infinity);
          const range = row.reduce((best, value) => Math.max(best, value), -Infinity) - low || 1;
          const lows = new Array(columns).fill(Infinity), highs = new Array(columns).fill(-Infinity);
          row.forEach((value, place) => {
            const column = Math.floor((place * columns) / row.length);
            const scaled = (value - low) / range;
            lows[column] = Math.min(lows[column], scaled);
            highs[column] = Math.max(highs[column], scaled);
          });
          return [lows, highs];
        });
      }
      return sequence.envelopes;
    }

    draw() {
      if (!this.values) return;
      const style = getComputedStyle(document.documentElement);
      const names = { warm: "--warm", cool: "--cool", line: "--faint", mark: "--mark", ink: "--ink" };
      const colours = Object.fromEntries(Object.entries(names).map(([key, name]) => [key, style.getPropertyValue(name).trim()]));
      this.bars(colours);
      this.strips(colours);
      if (this.pictured) this.picture(colours);
    }

    bars(colours) {
      const [pen, width, height] = this.canvas(this.map, 130);
      const columns = this.pooled(this.values, width);
      const wide = width / columns.length;
      const most = columns.reduce((best, value) => Math.max(best, Math.abs(value)), 1e-300);
      const middle = columns.some((value) => value < 0) ? height / 2 : height - 1;
      const tall = middle === height / 2 ? middle - 2 : height - 3;
      const look = this.sequence.look;
      if (look.kind === "curve") {
        pen.globalAlpha = 0.45;
        pen.strokeStyle = colours.line;
        for (const [lows, highs] of this.envelopes(columns.length)) {
          pen.beginPath();
          lows.forEach((low, column) => {
            pen.lineTo((column + 0.5) * wide, height - 2 - highs[column] * (height - 4));
            if (low !== highs[column]) pen.lineTo((column + 0.5) * wide, height - 2 - low * (height - 4));
          });
          pen.stroke();
        }
        pen.globalAlpha = 1;
      }
      pen.fillStyle = colours.mark;
      pen.globalAlpha = 0.5;
      pen.fillRect((this.place * width) / this.length - 1, 0, Math.max(3, width / this.length), height);
      pen.globalAlpha = 1;
      columns.forEach((value, column) => {
        pen.fillStyle = value < 0 ? colours.cool : colours.warm;
        // By the square root: with its residual a position mostly feeds itself, and all else would be flat.
        const size = Math.sqrt(Math.abs(value) / most) * tall;
        pen.fillRect(column * wide, value < 0 ? middle : middle - size, Math.max(1, wide - (wide > 3 ? 1 : 0)), size);
      });
      pen.fillStyle = colours.line;
      pen.fillRect(0, middle, width, 1);
      if (wide > 9 && look.symbols && this.length === columns.length) {
        pen.fillStyle = colours.ink;
        pen.font = "11px monospace";
        pen.textAlign = "center";
        look.symbols.forEach((symbol, place) => { if (symbol.length < 3) pen.fillText(symbol, (place + 0.5) * wide, 11); });
      }
    }

    // How the position spreads: a strip for each stage, the unit vector on top.
    strips(colours) {
      const shown = this.stages.length > 1 ? this.stages : [];
      this.lanes.hidden = this.legend.hidden = !shown.length;
      if (!shown.length) return;
      const last = shown.length - 1;
      const [first, final] = this.what.value === "rows" ? [last, 1] : [1, last];
      const step = this.block.value === "all" ? "block" : "factor";
      this.legend.textContent = `Strips: on top the position itself, then what it has reached after ${step} ${first}`
        + (last > 1 ? `, and so on to ${step} ${final}.` : ".");
      const tall = shown.length > 12 ? 9 : 13;
      const [pen, width] = this.canvas(this.lanes, tall * shown.length);
      const parts = shown.map((values) => this.pooled(values, width));
      const wide = parts[0].length;
      // A pixel for every column and stage, stretched afterwards: thousands of rectangles would take longer.
      const image = new ImageData(wide, parts.length);
      const tones = { warm: bytes(colours.warm), cool: bytes(colours.cool) };
      parts.forEach((columns, stage) => {
        const most = columns.reduce((best, value) => Math.max(best, Math.abs(value)), 1e-300);
        columns.forEach((value, column) => {
          if (value === 0) return;
          image.data.set(value < 0 ? tones.cool : tones.warm, 4 * (stage * wide + column));
          image.data[4 * (stage * wide + column) + 3] = 255 * Math.max(0.06, Math.sqrt(Math.abs(value) / most));
        });
      });
      const small = new OffscreenCanvas(wide, parts.length);
      small.getContext("2d").putImageData(image, 0, 0);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(small, 0, 0, width, tall * parts.length);
    }

    picture(colours) {
      const look = this.sequence.look;
      const [pen, width] = this.canvas(this.scene);
      const cell = width / look.side;
      const most = this.values.reduce((best, value) => Math.max(best, Math.abs(value)), 1e-300);
      look.pixels.forEach((value, place) => {
        const x = (place % look.side) * cell, y = Math.floor(place / look.side) * cell;
        pen.globalAlpha = 1;
        pen.fillStyle = `rgb(${value},${value},${value})`;
        pen.fillRect(x, y, cell + 0.5, cell + 0.5);
        pen.globalAlpha = 0.75 * Math.sqrt(Math.abs(this.values[place]) / most);
        pen.fillStyle = this.values[place] < 0 ? colours.cool : colours.warm;
        pen.fillRect(x, y, cell + 0.5, cell + 0.5);
      });
      pen.globalAlpha = 1;
      pen.strokeStyle = colours.mark;
      pen.lineWidth = 2;
      pen.strokeRect((this.place % look.side) * cell, Math.floor(this.place / look.side) * cell, cell, cell);
    }
  }

  for (const root of document.querySelectorAll(".explorer")) {
    const sequences = data.runs[Number(root.dataset.run)].explorers;
    root.explorer = new Explorer(root, sequences);
    root.dataset.ready = "true";
  }
})();
