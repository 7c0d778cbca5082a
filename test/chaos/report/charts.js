// Runs in the page of a report: draws its charts from the data that the page carries. `uPlot` is in the page too.
(() => {
  const { seconds, faults } = JSON.parse(document.getElementById('data').textContent);
  const at = seconds.map((_, i) => i);
  const column = (name) => seconds.map((second) => second[name] ?? null);
  const COLOURS = { node: '#c0392b', network: '#2471a3', client: '#b7950b', ranges: '#1e8449' };

  /** Marks when faults were at work, behind the lines. */
  function bands(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    for (const { category, fromS, toS } of faults) {
      const left = plot.valToPos(fromS, 'x', true);
      const right = Math.max(left + devicePixelRatio, plot.valToPos(toS, 'x', true));
      ctx.fillStyle = `${COLOURS[category]}26`;
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      ctx.fillStyle = COLOURS[category];
      ctx.fillRect(left, bbox.top, devicePixelRatio, bbox.height);
    }
    ctx.restore();
  }

  const told = document.getElementById('told');
  /** Names the faults at the second under the cursor. */
  function tell(plot) {
    const second = plot.cursor.idx;
    const now =
      second === null || second === undefined
        ? []
        : faults.filter(({ fromS, toS }) => fromS < second + 1 && toS >= second);
    told.textContent = now.length === 0 ? '\u00a0' : now.map(({ kind, what }) => `${kind}: ${what}`).join(' · ');
  }

  const clock = (second) => `${Math.floor(second / 60)}:${String(second % 60).padStart(2, '0')}`;
  const shared = (title, element) => ({
    title,
    width: element.clientWidth,
    height: 280,
    cursor: { sync: { key: 'time' } },
    hooks: { drawClear: [bands], setCursor: [tell] },
  });
  const time = { label: 'time', value: (_, second) => (second === null ? '–' : clock(second)) };
  const timeAxis = { values: (_, ticks) => ticks.map(clock) };
  const ms = (_, value) => (value === null ? '–' : `${value.toFixed(value < 10 ? 1 : 0)} ms`);

  const round = (value) => (value === null ? null : value < 1_000 ? `${value} ms` : `${value / 1_000} s`);

  function latency(element) {
    const line = (label, stroke, width) => ({ label, stroke, width, value: ms, spanGaps: false });
    return {
      ...shared('Latency of what was answered (registers, transactions), per second', element),
      scales: { x: { time: false }, y: { distr: 3 } },
      axes: [timeAxis, { values: (_, ticks) => ticks.map(round), size: 70 }],
      series: [time, line('median', '#1e8449', 1.5), line('99 %', '#884ea0', 1.5), line('slowest', '#909497', 1)],
    };
  }

  function outcomes(element) {
    const line = (label, stroke, fill) => ({ label, stroke, width: 1.5, ...(fill && { fill }) });
    return {
      ...shared('Operations per second, by outcome', element),
      scales: { x: { time: false }, y: { range: (_, _low, high) => [0, Math.max(1, high * 1.05)] } },
      axes: [timeAxis, { size: 70 }],
      series: [
        time,
        line('done', '#1e8449', '#1e844918'),
        line('refused', '#b9770e'),
        line('outcome unknown', '#c0392b'),
      ],
    };
  }

  for (const [id, make, columns] of [
    ['latency', latency, ['p50', 'p99', 'max']],
    ['outcomes', outcomes, ['done', 'refused', 'unknown']],
  ]) {
    const element = document.getElementById(id);
    const plot = new uPlot(make(element), [at, ...columns.map(column)], element);
    addEventListener('resize', () => plot.setSize({ width: element.clientWidth, height: 280 }));
  }
})();
