/** Wraps the storages of the browser. If the browser blocks site data or a storage is full, values stay in memory. */
import { isEmbedded } from './embed-address.js';

/** @param open returns the storage, or undefined to use only memory. It may throw, because reading `window.localStorage` may throw. */
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

/** All tabs share this storage. An embedded page stores nothing. */
export const browserStorage = storageWithFallback(() => (isEmbedded() ? undefined : localStorage));
/** This storage survives a reload, and ends when the tab is closed. */
export const tabStorage = storageWithFallback(() => sessionStorage);
