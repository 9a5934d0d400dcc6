/** Renders the product name, the theme switch and the menu. */
import { useEffect, useState } from 'react';
import { Popover, TextButton } from '../controls/controls.js';
import { embedTheme } from './embed-address.js';
import { useSession } from './session.js';
import { browserStorage } from './storage.js';

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

const THEME_KEY = 'meterline.theme';
const DARK = window.matchMedia('(prefers-color-scheme: dark)');

function currentTheme(): 'light' | 'dark' {
  const chosen = embedTheme() ?? browserStorage.getItem(THEME_KEY);
  return (chosen === null ? DARK.matches : chosen === 'dark') ? 'dark' : 'light';
}

/** Applies the theme of the embedding page. Without such a theme, applies the user's choice, and otherwise the system's theme. */
export function applyTheme(): void {
  document.documentElement.style.colorScheme = currentTheme();
}

export function ThemeSwitch() {
  const [theme, setTheme] = useState(currentTheme);
  const other = theme === 'dark' ? 'light' : 'dark';
  const update = () => {
    applyTheme();
    setTheme(currentTheme());
  };
  const toggle = () => {
    browserStorage.setItem(THEME_KEY, other);
    update();
  };
  useEffect(() => {
    DARK.addEventListener('change', update);
    return () => DARK.removeEventListener('change', update);
  });
  return (
    <button type="button" className="icon-button" aria-label={`Use the ${other} theme`} onClick={toggle}>
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

const GUIDES = 'https://github.com/meterline/meterline/tree/main/docs/guides';

export function PageMenu() {
  const { signOut } = useSession();
  return (
    <Popover label="Menu">
      {() => (
        <ul className="menu">
          <li>
            <a href="docs">API reference</a>
          </li>
          <li>
            <a href={GUIDES}>Guides</a>
          </li>
          <li>
            <TextButton onClick={signOut}>Sign out</TextButton>
          </li>
        </ul>
      )}
    </Popover>
  );
}
