/** The monthly budget that a viewer sets for an account. The browser keeps it: it is a line on a page, not a limit. */
import { type DecimalText, decimalText, isDecimalText, percentOf } from '@meterline/catalog';
import { useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
const keyOf = (account: string) => `meterline.budget.${account}`;

/** USD a month; undefined: none is set. */
export function useBudget(account: string): DecimalText | undefined {
  const text = useSyncExternalStore(subscribe, () => localStorage.getItem(keyOf(account)));
  return text !== null && isDecimalText(text) ? text : undefined;
}

export function setBudget(account: string, budget: DecimalText | undefined): void {
  if (budget === undefined) localStorage.removeItem(keyOf(account));
  else localStorage.setItem(keyOf(account), budget);
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', listener);
  };
}

const AMOUNT = /^\$?(\d{1,15})(?:\.(\d{1,2}))?$/;

/** `$1,200.50` and `1200.5` are the same; undefined for what is no amount above zero. */
export function readBudget(text: string): DecimalText | undefined {
  const [, integer = '', fraction = ''] = AMOUNT.exec(text.replaceAll(/[\s,]/g, '')) ?? [];
  const [whole, rest] = [integer.replace(/^0+(?=\d)/, ''), fraction.replace(/0+$/, '')];
  if (whole === '' || (whole === '0' && rest === '')) return undefined;
  return decimalText(rest === '' ? whole : `${whole}.${rest}`);
}

/** `62% used`, in whole percent. */
export function budgetShare(part: DecimalText, budget: DecimalText): string {
  return `${percentOf(part, budget, 0) ?? '0'}%`;
}
