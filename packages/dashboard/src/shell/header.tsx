/** For the top of every page: the name, and the theme's switch. */
import { useSyncExternalStore } from 'react';
import { chooseTheme, currentTheme, onThemeChange, type Theme } from './theme.js';

export function useTheme(): Theme {
  return useSyncExternalStore(onThemeChange, currentTheme);
}

export function Brand() {
  return (
    <span className="brand">
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" />
        <path d="M8 23V15M13.500 23V9M19 23v-6M24.500 23V12" />
      </svg>
      Meterline
    </span>
  );
}

export function ThemeSwitch() {
  const theme = useTheme();
  const other = theme === 'dark' ? 'light' : 'dark';
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={`Use the ${other} theme`}
      onClick={() => chooseTheme(other)}
    >
      <svg viewBox="0 0 20 20" aria-hidden="true">
        {theme === 'dark' ? (
          <path d="M10 3.200v-1.700M10 18.500v-1.700M3.200 10h-1.700M18.500 10h-1.700M5.200 5.200 4 4M16 16l-1.200-1.200M14.800 5.200 16 4M4 16l1.200-1.200M13.500 10a3.500 3.500 0 1 1-7 0 3.500 3.500 0 0 1 7 0Z" />
        ) : (
          <path d="M16.800 11.700A7 7 0 0 1 8.300 3.200a7 7 0 1 0 8.500 8.500Z" />
        )}
      </svg>
    </button>
  );
}
