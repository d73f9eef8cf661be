"use strict";
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // Tables: a heading's button sorts by its column, then the other way round; rows without a value stay last.
  const value = (cell) => {
    const given = cell.dataset.sort ?? cell.textContent.trim();
    return given === "" || given === "nan" ? null : isNaN(given) ? given : Number(given);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  for (const table of document.querySelectorAll("table.sortable")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) =>
      heading.firstElementChild.addEventListener("click", () => {
        const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows].map((row) => [value(row.cells[column]), row]);
        rows.sort(([a], [b]) => (a === null ? (b === null ? 0 : 1) : b === null ? -1 : sign * compare(a, b)));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      }),
    );
  }

  // Charts: rows are unpacked once, and drawn again whenever colours or the page's width change.
  const charts = [...document.querySelectorAll("figure.chart")].map((figure) => {
    const { spec, columns, rows } = JSON.parse(figure.querySelector("script").textContent);
    const records = rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
    const [plot, controls] = [figure.querySelector(".plot > div"), figure.querySelector(".controls")];
    return { figure, plot, controls, spec, columns, records, view: null };
  });

  const theme = () => {
    const [ink, quiet, line, paper] = ["--ink", "--quiet", "--line", "--paper"].map(colour);
    const font = colour("--sans");
    return {
      background: null, font, padding: 2,
      view: { stroke: null },
      axis: {
        domainColor: quiet, tickColor: quiet, labelColor: quiet, titleColor: quiet, gridColor: line, gridOpacity: 0.6,
        titleFontWeight: "normal", titleFontSize: 12, labelFontSize: 11, tickSize: 4, labelFlush: false, titlePadding: 8,
        labelOverlap: "greedy", domain: false,
      },
      axisX: { grid: false, domain: true, tickCount: 5, labelFlush: true, titleAnchor: "end" },
      axisY: { ticks: false, labelPadding: 6, titleAngle: 0, titleAlign: "left", titleAnchor: "end", titleX: 0, titleY: -10, tickCount: 5 },
      header: { labelColor: ink, labelFontSize: 12, labelFontWeight: 600, labelAnchor: "start", titleColor: quiet, title: null },
      legend: { labelColor: ink, titleColor: quiet, titleFontWeight: "normal", labelFontSize: 12, titleFontSize: 12, orient: "top", titleOrient: "left", offset: 30, labelLimit: 260, symbolStrokeWidth: 2.5, columnPadding: 18, symbolOpacity: 1 },
      title: { color: ink, subtitleColor: quiet, anchor: "start", frame: "group", offset: 12, fontSize: 13, fontWeight: 600 },
      text: { color: ink, font, fontSize: 11.5 },
      rule: { color: quiet },
      line: { strokeWidth: 1.75 },
      point: { filled: true, size: 55 },
      concat: { spacing: 28 },
      facet: { spacing: 28 },
    };
  };

  // Vega-Lite fits single charts to a width. Panels of facets and concatenations get a width each, found in two passes.
  const panels = (spec, width) => {
    const least = spec.facet ? 220 : 300;
    return Math.max(1, Math.min(spec.columns ?? 1, Math.floor(width / least)));
  };
  const fit = (spec, width, panel) => {
    if (spec.facet) return { ...spec, columns: panels(spec, width), spec: { ...spec.spec, width: panel } };
    if (spec.concat) return { ...spec, columns: panels(spec, width), concat: spec.concat.map((part) => ({ ...part, width: panel })) };
    return { ...spec, width, autosize: { type: "fit-x", contains: "padding" } };
  };

  // Letters of the longest entry of a chart's legends.
  const longest = (spec) => {
    const entries = [""];
    JSON.stringify(spec, (key, value) => {
      if (key === "color") entries.push(...(value?.scale?.domain ?? []));
      return value;
    });
    return Math.max(...entries.map((entry) => String(entry).length));
  };

  // What a click on one legend singles out, every figure singles out that has it.
  const chosen = {};
  const link = (chart) => {
    const field = JSON.stringify(chart.spec).match(/"picked_(\w+)"/)?.[1];
    if (!field) return;
    chart.signal = `picked_${field}_${field}_legend`;
    const single = (other) => {
      other.said = other.records.some((row) => row[field] === chosen[field]) ? chosen[field] : null;
      other.view.signal(other.signal, other.said).runAsync();
    };
    if (chosen[field]) single(chart);
    chart.view.addSignalListener(chart.signal, (_, value) => {
      if (value === (chart.said ?? null)) return;
      chart.said = chosen[field] = value;
      charts.filter((other) => other !== chart && other.view && other.signal === chart.signal).forEach(single);
    });
  };

  const embed = async (chart, panel) => {
    const width = chart.figure.clientWidth;
    const spec = fit(chart.spec, width, panel);
    if (chart.records.length) spec.datasets = { ...spec.datasets, rows: chart.records.map((row) => ({ ...row })) };
    const config = theme();
    if (panel) config.header = { ...config.header, labelLimit: panel };
    if (width < 560) {
      const room = width - (panel && (spec.facet || spec.concat) ? 40 : 120);
      config.legend = { ...config.legend, columns: Math.max(1, Math.floor(room / (7 * longest(spec) + 40))) };
    }
    const lists = (spec.params ?? []).filter((param) => param.bind?.input);
    const kept = chart.view ? lists.map(({ name }) => [name, chart.view.signal(name)]) : [];
    chart.view?.finalize();
    chart.controls.replaceChildren();
    const { view } = await vegaEmbed(chart.plot, spec, {
      mode: "vega-lite", renderer: "svg", actions: false, config, bind: chart.controls, defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
    chart.view = view;
    for (const [name, value] of kept) view.signal(name, value);
    await view.runAsync();
    link(chart);
  };

  const draw = async (chart) => {
    const width = chart.figure.clientWidth;
    const several = chart.spec.facet || chart.spec.concat;
    const columns = panels(chart.spec, width);
    let panel = Math.floor(width / columns) - 60;
    await embed(chart, panel);
    if (!several) return;
    const excess = chart.plot.firstElementChild.getBoundingClientRect().width - width;
    panel = Math.max(80, panel - Math.ceil(excess / columns));
    await embed(chart, panel);
  };

  let turn = 0;
  const drawAll = async () => {
    const mine = ++turn;
    for (const chart of charts) {
      if (mine !== turn) return;
      try {
        await draw(chart);
        chart.figure.dataset.drawn = "";
      } catch (error) {
        chart.plot.textContent = "This figure could not be drawn.";
        console.error(error);
      }
    }
    root.dataset.drawn = "";
  };

  const shown = (item) => (item === null || item === undefined ? "–" : Array.isArray(item) ? item.join(" – ") : String(item));
  for (const { figure, columns, records } of charts) {
    const details = figure.querySelector("details");
    const list = () => {
      const table = document.createElement("table");
      const heading = table.createTHead().insertRow();
      for (const name of columns) {
        const cell = heading.appendChild(document.createElement("th"));
        cell.scope = "col";
        cell.textContent = name;
      }
      const body = table.createTBody();
      for (const row of records) {
        const line = body.insertRow();
        for (const name of columns) {
          const cell = line.insertCell();
          cell.textContent = shown(row[name]);
          if (typeof row[name] === "number") cell.className = "numeric";
        }
      }
      columns.forEach((name, i) => {
        if (records.some((row) => typeof row[name] === "number")) heading.cells[i].className = "numeric";
      });
      const box = details.querySelector(".data");
      box.tabIndex = 0;
      box.append(table);
    };
    details.addEventListener("toggle", list, { once: true });
  }

  const button = document.getElementById("theme");
  const label = () => button.setAttribute("aria-pressed", String(isDark()));
  button.hidden = false;
  label();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
    drawAll();
  });
  dark.addEventListener("change", () => { label(); drawAll(); });

  let width = innerWidth, timer;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(drawAll, 200);
  });
  drawAll();
})();
