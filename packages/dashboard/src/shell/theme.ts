/** Light or dark: the system's theme, unless the person chose one. The browser remembers the choice. */
import { useSyncExternalStore } from 'react';

export type Theme = 'light' | 'dark';

const STORAGE_KEY = 'meterline.theme';
const DARK = window.matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

function chosenTheme(): Theme | undefined {
  const kept = localStorage.getItem(STORAGE_KEY);
  return kept === 'light' || kept === 'dark' ? kept : undefined;
}

function currentTheme(): Theme {
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

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, currentTheme);
}
