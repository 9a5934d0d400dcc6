/**
 * Reads the address of an embedded page. Its settings are in the fragment, which no browser sends to a server:
 * `/embed#key=mlk_…&view=period%3Dmonth&theme=dark&locale=de`. The key is removed from the address at once and kept in memory only.
 */

const FILE = 'embed';
const THEMES = ['light', 'dark'] as const;

// Unit tests have no address.
export const isEmbedded = globalThis.location?.pathname.endsWith(`/${FILE}`);
const fragment = new URLSearchParams(isEmbedded ? location.hash.slice(1) : '');

/** Undefined: the embedding page has to post one. */
export const givenKey = fragment.get('key') ?? undefined;
/** Undefined: the theme of the system. */
export const givenTheme = THEMES.find((theme) => theme === fragment.get('theme'));
/** How dates and numbers are written; undefined: as in English. */
export const givenLocale = localeOf(fragment.get('locale') ?? '');

if (isEmbedded) {
  // A reload keeps the view, the theme and the locale.
  const query = fragment.get('view') ?? location.search.slice(1);
  for (const name of ['key', 'view']) fragment.delete(name);
  history.replaceState(null, '', `${FILE}${query && `?${query}`}${fragment.size > 0 ? `#${fragment}` : ''}`);
  // A changed fragment is a new key or view; the browser itself would load nothing.
  window.addEventListener('hashchange', () => location.reload());
}

function localeOf(text: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(text || [])[0];
  } catch {
    // No language tag.
    return undefined;
  }
}
