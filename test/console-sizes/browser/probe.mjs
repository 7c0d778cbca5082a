// Runs in the page, before its own code: notes when content appears, what shifts, and how long frames take.
(() => {
  const probe = { paintMs: undefined, loadedMs: undefined, shift: 0, longTasks: [] };
  const watch = (type, seen) => {
    new PerformanceObserver((list) => list.getEntries().forEach(seen)).observe({ type, buffered: true });
  };
  watch('paint', ({ name, startTime }) => {
    if (name === 'first-contentful-paint') probe.paintMs = startTime;
  });
  watch('layout-shift', ({ value, hadRecentInput }) => {
    if (!hadRecentInput) probe.shift += value;
  });
  watch('longtask', ({ duration }) => probe.longTasks.push(duration));

  let isLoaded = () => {};
  const loaded = new Promise((resolve) => {
    isLoaded = resolve;
  });
  // Loaded: the page has its title, and nothing is being read for the first time.
  const look = () => {
    if (probe.loadedMs !== undefined) return;
    if (document.querySelector('main h1') !== null && document.querySelector('.loading') === null) {
      requestAnimationFrame(() => {
        if (document.querySelector('.loading') !== null) return;
        probe.loadedMs ??= performance.now();
        isLoaded();
      });
    }
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });

  const longest = () => {
    const boxes = [document.scrollingElement, ...document.querySelectorAll('.table-long, .virtual-list')];
    const hidden = ({ scrollHeight, clientHeight }) => scrollHeight - clientHeight;
    return boxes.reduce((most, box) => (hidden(box) > hidden(most) ? box : most));
  };

  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

  /** Scrolls the longest part of the page to its end in `frames` frames; returns how long each took. */
  const scroll = async (frames) => {
    const box = longest();
    const end = box.scrollHeight - box.clientHeight;
    const tookMs = [];
    let last = await frame();
    for (let i = 1; i <= frames; i++) {
      box.scrollTop = (end * i) / frames;
      const now = await frame();
      tookMs.push(now - last);
      last = now;
    }
    box.scrollTop = 0;
    return { rows: end, tookMs };
  };

  /** Stays at the end of the longest part until it has not grown for `calmMs`: somebody wants to see all of it. */
  const toTheEnd = async ({ calmMs, boundMs }) => {
    const beganMs = performance.now();
    const tookMs = [];
    let last = await frame();
    let height = 0;
    let grownMs = last;
    while (last - grownMs < calmMs && last - beganMs < boundMs) {
      const box = longest();
      if (box.scrollHeight > height) {
        height = box.scrollHeight;
        grownMs = last;
      }
      box.scrollTop = box.scrollHeight;
      const now = await frame();
      tookMs.push(now - last);
      last = now;
    }
    return { rows: height, tookMs };
  };

  // In capitals: nothing of the console is called like this.
  globalThis.PROBE = { read: () => probe, loaded, scroll, toTheEnd };
})();
