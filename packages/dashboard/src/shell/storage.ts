/** The browser's storages, and memory where the browser blocks site data or has no room: the page then works until it is closed. */
import { isEmbedded } from './embed-address.js';

/** @param open throws, as reading `window.localStorage` does, or returns undefined where there is no storage */
export function storageWithFallback(
  open: () => Storage | undefined,
): Pick<Storage, 'getItem' | 'setItem' | 'removeItem'> {
  const memory = new Map<string, string>();
  const attempt = <Result>(use: (storage: Storage) => Result): Result | undefined => {
    try {
      const storage = open();
      return storage && use(storage);
    } catch {
      return undefined;
    }
  };
  return {
    getItem: (name) => memory.get(name) ?? attempt((storage) => storage.getItem(name)) ?? null,
    setItem(name, value) {
      memory.set(name, value);
      attempt((storage) => storage.setItem(name, value));
    },
    removeItem(name) {
      memory.delete(name);
      attempt((storage) => storage.removeItem(name));
    },
  };
}

/** Shared by all tabs. A page inside another page stores nothing. */
export const browserStorage = storageWithFallback(() => (isEmbedded ? undefined : localStorage));
/** A reload keeps it, and closing the tab removes it. */
export const tabStorage = storageWithFallback(() => sessionStorage);
