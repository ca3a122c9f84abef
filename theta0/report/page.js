// What follows the pointer, and what changes while a run goes on. The page is whole without it.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const kept = {
    get() { try { return localStorage.getItem("theta0-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("theta0-theme", value); } catch { /* a file without storage */ } },
  };
  if (["dark", "light"].includes(kept.get())) root.dataset.theme = kept.get();
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const chosen = {};  // what the reader has set, kept when the page is renewed

  function theme() {
    const button = document.getElementById("theme");
    const say = () => {
      button.textContent = dark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Use ${dark() ? "light" : "dark"} colours`);
      button.setAttribute("aria-pressed", String(dark()));
    };
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      kept.set(root.dataset.theme);
      say();
    });
    system.addEventListener("change", say);
    say();
  }

  function panels(inside) {
    for (const select of all("select[data-choose]", inside)) {
      const show = () => {
        for (const panel of all(".panel", inside)) panel.classList.toggle("on", panel.dataset.panel === select.value);
      };
      if (chosen.panel && [...select.options].some((option) => option.value === chosen.panel)) select.value = chosen.panel;
      select.addEventListener("change", () => { chosen.panel = select.value; show(); });
      show();
    }
  }

  function sorting(inside) {
    for (const table of all("table[data-sort]", inside)) {
      const heads = all("thead th", table), body = table.tBodies[0];
      const sort = (place, up) => {
        const key = (row) => {
          const cell = row.cells[place], text = cell.dataset.v ?? cell.textContent.replaceAll(",", "");
          return heads[place].classList.contains("n") ? (text === "" ? -Infinity : Number(text)) : text;
        };
        const rows = [...body.rows].map((row) => [key(row), row]);
        rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1));
        body.append(...rows.map(([, row]) => row));
        heads.forEach((head, i) => head.setAttribute("aria-sort", i === place ? (up ? "ascending" : "descending") : "none"));
        chosen.sort = [place, up];
      };
      heads.forEach((head, place) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = head.textContent;
        head.replaceChildren(button);
        button.addEventListener("click", () => {
          const now = head.getAttribute("aria-sort");
          sort(place, now ? now !== "ascending" : !head.classList.contains("n") || place === 0);
        });
      });
      if (chosen.sort && chosen.sort[0] < heads.length) sort(...chosen.sort);
    }
  }

  // The mark next to the pointer says what it is; with the keyboard, arrows go from one to the next.
  const tip = document.createElement("div"), spot = document.createElement("div");
  tip.id = "tip"; spot.id = "spot";
  tip.setAttribute("role", "status");
  tip.hidden = spot.hidden = true;
  const hide = () => { tip.hidden = spot.hidden = true; };
  function show(chart, [x, y, text]) {
    const box = chart.getBoundingClientRect(), scale = box.width / chart.viewBox.baseVal.width;
    const left = box.left + scrollX + x * scale, top = box.top + scrollY + y * scale;
    tip.hidden = spot.hidden = false;
    tip.textContent = text;
    spot.style.left = `${left}px`; spot.style.top = `${top}px`;
    const wide = tip.offsetWidth, room = root.clientWidth + scrollX - wide - 8;
    tip.style.left = `${Math.max(scrollX + 8, Math.min(room, left - wide / 2))}px`;
    tip.style.top = `${top - tip.offsetHeight - 12}px`;
  }
  function tips(inside) {
    for (const chart of all("svg[data-tips]", inside)) {
      const points = chart.dataset.tips.split("\n").map((line) => {
        const [x, y] = line.split(",", 2);
        return [Number(x), Number(y), line.slice(x.length + y.length + 2)];
      });
      const near = (event) => {
        const box = chart.getBoundingClientRect(), scale = box.width / chart.viewBox.baseVal.width;
        const x = (event.clientX - box.left) / scale, y = (event.clientY - box.top) / scale;
        const far = ([a, b]) => (a - x) ** 2 + (b - y) ** 2;
        const best = points.reduce((one, other) => (far(other) < far(one) ? other : one));
        return far(best) < 45 ** 2 ? best : null;
      };
      const follow = (event) => { const best = near(event); if (best) show(chart, best); else hide(); };
      chart.addEventListener("pointermove", follow);
      chart.addEventListener("pointerdown", follow);
      chart.addEventListener("pointerleave", hide);
      const row = [...points].sort((a, b) => a[0] - b[0]);
      let place = -1;
      chart.setAttribute("tabindex", "0");
      chart.addEventListener("blur", hide);
      chart.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (event.key === "Escape") hide();
        if (!step) return;
        event.preventDefault();
        place = Math.max(0, Math.min(row.length - 1, place + step));
        show(chart, row[place]);
      });
    }
  }

  function copying(inside) {
    if (!navigator.clipboard) return;
    for (const figure of all("figure.text", inside)) {
      const button = document.createElement("button");
      button.type = "button"; button.className = "copy"; button.textContent = "Copy";
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(figure.querySelector("code").textContent);
          button.textContent = "Copied";
        } catch { button.textContent = "Not allowed"; }
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      figure.append(button);
    }
  }

  function enhance(inside) { panels(inside); sorting(inside); tips(inside); copying(inside); }

  function renew(main, html) {
    const scrolled = all(".box, nav ul", main).map((box) => [box.scrollLeft, box.scrollTop]);
    hide();
    main.innerHTML = html;
    enhance(main);
    all(".box, nav ul", main).forEach((box, i) => { if (scrolled[i]) [box.scrollLeft, box.scrollTop] = scrolled[i]; });
  }

  function live(main) {
    const says = document.getElementById("live");
    let tag = null;
    const ask = async () => {
      try {
        const answer = await fetch("main", { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
        if (answer.status === 200) {
          renew(main, await answer.text());
          tag = answer.headers.get("ETag");
        } else if (answer.status !== 304) throw new Error(await answer.text());
        says.textContent = "live"; says.classList.remove("lost");
      } catch (error) {
        says.textContent = error instanceof TypeError ? "not live: theta0 watch has ended" : `not live: ${error.message}`;
        says.classList.add("lost");
      }
      setTimeout(ask, 2000);
    };
    setTimeout(ask, 1000);
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.body.append(spot, tip);
    const main = document.getElementById("main");
    theme();
    enhance(main);
    if ("live" in main.dataset) live(main);
  });
})();
