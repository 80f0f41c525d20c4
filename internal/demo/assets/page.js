// The page works without this: forms post, and it is read again every 5 s. With it,
// the parts that change are taken over once a second, and each image is asked for
// again and again, as a viewer would.
'use strict';
(() => {
  const kind = document.body.dataset.as;
  const announcer = document.getElementById('announcer');
  const last = new Map();
  let newest = 0;
  let misses = 0;

  const announce = (text) => {
    announcer.textContent = text;
  };

  // replaceParts puts a fragment's new content in place, and keeps what a person has
  // opened, typed, scrolled or focused.
  const replaceParts = (box, html) => {
    const focused = box.contains(document.activeElement) ? document.activeElement.id : '';
    const open = [...box.querySelectorAll('details[open]')].map((d) => d.id);
    const typed = [...box.querySelectorAll('input[id]')].map((i) => [i.id, i.value]);
    const inner = document.createElement('template');
    inner.innerHTML = html;
    for (const id of open) {
      const d = inner.content.getElementById(id);
      if (d) d.open = true;
    }
    for (const [id, value] of typed) {
      const i = inner.content.getElementById(id);
      if (i) i.value = value;
    }
    box.replaceChildren(inner.content);
    if (focused) {
      const again = document.getElementById(focused);
      if (again) again.focus({ preventScroll: true });
    }
  };

  const isBusy = (box) => {
    const chosen = document.getSelection();
    return (chosen && !chosen.isCollapsed && box.contains(chosen.anchorNode)) || box.querySelector(':active') !== null;
  };

  const tell = () => {
    const fresh = [...document.querySelectorAll('.journal li')].filter((li) => Number(li.dataset.number) > newest);
    if (fresh.length === 0) return;
    const first = newest === 0;
    newest = Number(fresh[0].dataset.number);
    if (!first) announce(fresh.reverse().map((li) => li.querySelector('span').textContent).join(' '));
  };

  let polling = null;
  const poll = () => {
    if (polling) return polling;
    polling = (async () => {
      try {
        const answer = await fetch('/live?as=' + kind, { signal: AbortSignal.timeout(5000) });
        if (!answer.ok) throw new Error('status ' + answer.status);
        const { fragments } = await answer.json();
        for (const [name, html] of Object.entries(fragments)) {
          const box = document.querySelector('[data-fragment="' + name + '"]');
          if (!box || last.get(name) === html || isBusy(box)) continue;
          last.set(name, html);
          replaceParts(box, html);
        }
        tell();
        misses = 0;
        document.body.classList.remove('ended');
      } catch {
        misses += 1;
        if (misses === 3) {
          document.body.classList.add('ended');
          announce('The demo does not answer any more.');
        }
      } finally {
        polling = null;
      }
    })();
    return polling;
  };

  const size = (n) => {
    if (n < 1000) return n + ' B';
    if (n < 100000) return (n / 1e3).toFixed(1) + ' kB';
    if (n < 1e6) return Math.round(n / 1e3) + ' kB';
    return (n / 1e6).toFixed(1) + ' MB';
  };

  // show asks for a tile's image as the chosen browser, and shows it once it is decoded.
  const show = async (tile) => {
    const image = tile.querySelector('img');
    const set = (part, text) => { tile.querySelector(part).textContent = text; };
    try {
      const answer = await fetch('/image?as=' + kind + '&path=' + encodeURIComponent(tile.dataset.path), { signal: AbortSignal.timeout(25000) });
      if (!answer.ok) throw new Error(await answer.text());
      const body = await answer.blob();
      const url = URL.createObjectURL(body);
      const fresh = new Image();
      fresh.src = url;
      try {
        await fresh.decode();
      } catch {
        URL.revokeObjectURL(url);
        throw new Error('the image is broken');
      }
      const old = image.src;
      image.src = url;
      if (old.startsWith('blob:')) URL.revokeObjectURL(old);
      const saved = Number(answer.headers.get('X-Demo-Saved'));
      tile.dataset.fate = 'good';
      tile.dataset.format = answer.headers.get('X-Demo-Format');
      set('.format', answer.headers.get('X-Demo-Format'));
      set('.size', size(body.size));
      set('.saved', saved > 0 ? Math.round(100 * saved / (saved + body.size)) + ' % saved' : '');
      set('.words', answer.headers.get('X-Demo-Words'));
      tile.querySelector('.dot').className = 'dot s-' + answer.headers.get('X-Demo-Way');
    } catch (error) {
      tile.dataset.fate = 'unavailable';
      set('.words', String(error.message).trim());
      tile.querySelector('.dot').className = 'dot s-none';
    }
  };

  const visit = async (tile, wait) => {
    await new Promise((done) => { setTimeout(done, wait); });
    for (;;) {
      if (!document.hidden && !document.body.classList.contains('ended')) await show(tile);
      await new Promise((done) => { setTimeout(done, 2500); });
    }
  };

  document.addEventListener('submit', async (event) => {
    const form = event.target;
    if (form.method !== 'post') return;
    event.preventDefault();
    const button = event.submitter;
    if (button && button.getAttribute('aria-disabled') === 'true') {
      const about = document.getElementById(button.getAttribute('aria-describedby'));
      announce(about ? about.textContent : 'Not now.');
      return;
    }
    const data = new URLSearchParams(new FormData(form, button));
    try {
      const answer = await fetch(form.action, { method: 'POST', body: data, headers: { Accept: 'application/json' } });
      if (!answer.ok) announce((await answer.text()).trim());
      else if (form.getAttribute('action').startsWith('/pictures')) location.reload();
    } catch {
      announce('The demo does not answer.');
    }
    await poll();
  });

  const choice = document.getElementById('as-form');
  choice.addEventListener('change', () => { choice.requestSubmit(); });

  document.querySelectorAll('.tile').forEach((tile, i) => { visit(tile, 300 * i); });
  tell();
  setInterval(() => { if (!document.hidden) poll(); }, 1000);
})();
