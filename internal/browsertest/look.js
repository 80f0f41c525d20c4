({
  // names gives what is wrong with names, landmarks, headings, labels and ids.
  names() {
    const found = [];
    const all = (selector) => [...document.querySelectorAll(selector)];
    const start = (e) => e.outerHTML.slice(0, 200);
    const labels = (e) => [...(e.labels || [])].map((l) => l.textContent).join(' ');
    for (const e of all('button, a, input:not([type=hidden]), select, textarea, progress, summary')) {
      if (!(e.getAttribute('aria-label') || labels(e) || e.textContent).trim()) found.push('no name: ' + start(e));
    }
    for (const e of all('img:not([alt])')) found.push('no alt: ' + start(e));
    for (const e of all('svg:not([aria-hidden=true], svg svg)')) {
      const words = e.getAttribute('aria-label') || e.querySelector('desc')?.textContent;
      if (e.getAttribute('role') !== 'img' || !words) found.push('a drawing without words: ' + start(e));
    }
    for (const attribute of ['aria-labelledby', 'aria-describedby']) {
      for (const e of all('[' + attribute + ']')) {
        for (const id of e.getAttribute(attribute).trim().split(/\s+/)) {
          if (!document.getElementById(id)) found.push('nothing has the id ' + id);
        }
      }
    }
    for (const e of all('a[href^="#"]')) if (!document.getElementById(e.hash.slice(1))) found.push('leads nowhere: ' + start(e));
    const ids = all('[id]').map((e) => e.id);
    for (const id of new Set(ids)) if (ids.filter((i) => i === id).length > 1) found.push('id twice: ' + id);
    for (const e of all('table')) {
      if (e.querySelectorAll('thead th[scope=col]').length !== e.querySelector('tbody tr').children.length) found.push('heads and cells differ: ' + start(e));
    }
    for (const e of all('.scroll')) if (e.tabIndex !== 0 || !e.id) found.push('the keyboard does not reach ' + start(e));
    for (const tag of ['header', 'main', 'footer', 'h1']) if (all(tag).length !== 1) found.push('not one ' + tag);
    let level = 0;
    for (const h of all('h1, h2, h3')) {
      const own = Number(h.tagName[1]);
      if (own > level + 1) found.push('heading skips a level: ' + h.textContent);
      level = own;
    }
    if (!document.querySelector('[aria-live]')) found.push('nothing is announced');
    if (!document.documentElement.lang) found.push('no language');
    if (document.body.innerHTML.includes('NaN')) found.push('NaN on the page');
    for (const e of all('body *')) {
      if (e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) < 12) found.push('small: ' + start(e));
    }
    return found.slice(0, 20);
  },

  // wide gives what reaches over the page's right edge, if it can be scrolled there.
  wide() {
    const page = document.documentElement;
    if (page.scrollWidth <= page.clientWidth) return [];
    const over = [...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, svg') && e.getBoundingClientRect().right > innerWidth + 1);
    return [(page.scrollWidth - page.clientWidth) + ' px too wide: ' + over.slice(-4).map((e) => e.outerHTML.slice(0, 160)).join('\n')];
  },

  // contrast gives text under 4.5 to 1 and marks under 3 to 1, as WCAG measures.
  contrast(marks) {
    const found = new Set();
    const rgba = (color) => {
      const numbers = color.match(/[\d.]+/g).map(Number);
      return numbers.length < 4 ? [...numbers, 1] : numbers;
    };
    const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
    const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const light = (c) => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
    const ground = (e) => {
      let c = [0, 0, 0, 0];
      for (; e; e = e.parentElement) {
        if (e.closest('svg')) continue;
        const own = rgba(getComputedStyle(e).backgroundColor);
        c = c[3] ? over(c, own) : own;
        if (c[3] === 1) return c;
      }
      return [255, 255, 255, 1];
    };
    const check = (e, color, least, words) => {
      const below = ground(e);
      const [dark, bright] = [light(below), light(over(rgba(color), below))].sort((x, y) => x - y);
      const ratio = (bright + 0.05) / (dark + 0.05);
      if (ratio < least) found.add(ratio.toFixed(2) + ' to 1: ' + e.tagName + ' ' + (e.getAttribute('class') || '') + ' ' + words.trim().slice(0, 40));
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const words = texts.currentNode.textContent;
      const e = texts.currentNode.parentElement;
      if (!words.trim() || e.closest('.hidden, noscript, .skip, title, desc') || !e.checkVisibility({ visibilityProperty: true })) continue;
      check(e, e.closest('svg') ? getComputedStyle(e).fill : getComputedStyle(e).color, 4.5, words);
    }
    for (const e of marks ? document.querySelectorAll(marks) : []) {
      const style = getComputedStyle(e);
      check(e, style.fill === 'none' ? style.stroke : style.fill, 3, 'a mark');
    }
    return [...found];
  },
})
