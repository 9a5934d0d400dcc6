/** What a script adds to the API's reference, which can be read without one: the theme, the language, copying, trying. */
import './reference.css';
import './operation.css';
import { applyTheme, chooseTheme, currentTheme, onThemeChange } from '../shell/theme.js';
import { enableForms } from './try-it.js';

/** Of the examples; kept, because nobody changes it from one example to the next. */
const LANGUAGE_KEY = 'meterline.language';
const COPIED_MS = 1_500;

applyTheme();
if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start);
else start();

function start(): void {
  enableThemeSwitch();
  enableLanguages();
  enableCopying();
  enableForms();
  foldContents();
}

function enableThemeSwitch(): void {
  const button = document.querySelector<HTMLButtonElement>('.theme-switch');
  if (!button) return;
  const other = () => (currentTheme() === 'dark' ? 'light' : 'dark');
  const show = () => {
    button.textContent = other() === 'dark' ? 'Dark' : 'Light';
    button.ariaLabel = `Use the ${other()} theme`;
  };
  button.addEventListener('click', () => chooseTheme(other()));
  onThemeChange(show);
  show();
  button.hidden = false;
}

function enableLanguages(): void {
  const buttons = [...document.querySelectorAll<HTMLInputElement>('.languages input')];
  const choose = (language: string) => {
    for (const button of buttons) button.checked = button.value === language;
  };
  const kept = localStorage.getItem(LANGUAGE_KEY);
  if (buttons.some(({ value }) => value === kept)) choose(kept ?? '');
  for (const button of buttons) {
    button.addEventListener('change', () => {
      const top = button.getBoundingClientRect().top;
      choose(button.value);
      // Examples above may have become longer or shorter.
      window.scrollBy({ top: button.getBoundingClientRect().top - top, behavior: 'instant' });
      localStorage.setItem(LANGUAGE_KEY, button.value);
    });
  }
}

function enableCopying(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button.copy')) {
    button.hidden = false;
    button.addEventListener('click', async () => {
      const blocks = [...(button.closest('.codes')?.querySelectorAll('pre') ?? [])];
      const shown = blocks.find((block) => block.checkVisibility());
      await navigator.clipboard.writeText(shown?.textContent ?? '');
      button.textContent = 'Copied';
      setTimeout(() => {
        button.textContent = 'Copy';
      }, COPIED_MS);
    });
  }
}

/** On a phone the contents would fill the first two screens. */
function foldContents(): void {
  const contents = document.querySelector<HTMLDetailsElement>('nav details');
  if (contents && matchMedia('(max-width: 860px)').matches) contents.open = false;
}
