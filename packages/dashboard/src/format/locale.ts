/** Formats dates and numbers in the locale of the page. */
import type { EpochMs } from '@meterline/catalog/plain';

let pageLocale: string | undefined;

/** Sets the locale of all formats. Call this before the page renders, because a format keeps the locale of its first use. */
export function setLocale(locale: string | undefined): void {
  pageLocale = locale;
}

/** Delays the creation of a value until its first use, when the locale is known. */
function lazy<Value>(create: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= create();
    return value;
  };
}

export function dateFormat(options: Intl.DateTimeFormatOptions): (instant: EpochMs | Date) => string {
  const format = lazy(() => new Intl.DateTimeFormat(pageLocale ?? 'en-GB', { ...options, timeZone: 'UTC' }));
  return (instant) => format().format(instant);
}

export function numberFormat(options: Intl.NumberFormatOptions): (value: number) => string {
  const format = lazy(() => new Intl.NumberFormat(pageLocale ?? 'en-US', options));
  return (value) => format().format(value);
}

const separators = lazy(() => {
  const parts = new Intl.NumberFormat(pageLocale ?? 'en-US').formatToParts(12_345.6);
  const separatorOf = (type: Intl.NumberFormatPartTypes) => parts.find((part) => part.type === type)?.value ?? '';
  return { group: separatorOf('group'), decimal: separatorOf('decimal') };
});

/** Replaces the separators of an English number, as the catalog formats it, with the separators of the locale. */
export function localized(text: string): string {
  const { group, decimal } = separators();
  return text.replace(/[,.]/g, (separator) => (separator === ',' ? group : decimal));
}
