/**
 * Reads the address of an embedded page. The settings are in the fragment, which browsers do not send to servers:
 * `/embed#key=mlk_…&view=period%3Dmonth&theme=dark&locale=de`.
 */

const FILE = 'embed';
const THEMES = ['light', 'dark'] as const;

export const isEmbedded = () => location.pathname.endsWith(`/${FILE}`);
const fragment = () => new URLSearchParams(isEmbedded() ? location.hash.slice(1) : '');

/** Returns the theme that the embedding page chose. Undefined means the theme of the system. */
export function embedTheme(): (typeof THEMES)[number] | undefined {
  return THEMES.find((theme) => theme === fragment().get('theme'));
}

/** Returns the locale that the embedding page chose. Undefined means English. */
export function embedLocale(): string | undefined {
  try {
    return Intl.getCanonicalLocales(fragment().get('locale') ?? [])[0];
  } catch {
    // The value is not a valid language tag.
    return undefined;
  }
}

/**
 * Removes the key from the address, so that the key stays in memory only. Moves the view from the fragment to the query string. The theme
 * and the locale stay in the fragment for a reload.
 * @returns undefined if the address has no key. The parent page must then post a key.
 */
export function takeEmbedKey(): string | undefined {
  const settings = fragment();
  const key = settings.get('key') ?? undefined;
  const query = settings.get('view') ?? location.search.slice(1);
  for (const name of ['key', 'view']) settings.delete(name);
  history.replaceState(null, '', `${FILE}${query && `?${query}`}${settings.size > 0 ? `#${settings}` : ''}`);
  // If only the fragment changes, the browser does not load the page again. Reload, because the fragment may contain a new key or view.
  window.addEventListener('hashchange', () => location.reload());
  return key;
}
