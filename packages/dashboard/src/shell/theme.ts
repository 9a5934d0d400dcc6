/** Light or dark. Without React: the API's reference has the same switch. */

export type Theme = 'light' | 'dark';

const STORAGE_KEY = 'meterline.theme';
const DARK = window.matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

/** The system's theme, unless the person chose one. The browser remembers the choice. */
function chosenTheme(): Theme | undefined {
  const kept = localStorage.getItem(STORAGE_KEY);
  return kept === 'light' || kept === 'dark' ? kept : undefined;
}

export function currentTheme(): Theme {
  return chosenTheme() ?? (DARK.matches ? 'dark' : 'light');
}

/** Sets the theme for the style sheet. */
export function applyTheme(): void {
  document.documentElement.dataset['theme'] = currentTheme();
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(STORAGE_KEY, theme);
  announce();
}

function announce(): void {
  applyTheme();
  for (const listener of listeners) listener();
}

DARK.addEventListener('change', announce);

/** Calls the listener after each change, until the returned function is called. */
export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
