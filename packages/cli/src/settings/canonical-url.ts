/** Addresses of the web, as settings give them. */
import { usageError } from '../command.js';
import type { Setting } from './settings.js';

/** One form of an address, so that two can be compared. @throws CommandError when it is none of the web's */
export function canonicalUrl({ value, source }: Pick<Setting, 'value' | 'source'>): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw usageError(`the address from ${source} must be a URL such as https://billing.example.com`);
  }
  if (url.username || url.password || url.search || url.hash) {
    throw usageError(`the address from ${source} must be a URL without credentials, ? and #`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v0$/, '');
}
