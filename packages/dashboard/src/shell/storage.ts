/** Wraps the storages of the browser. Values stay in memory if the browser blocks site data or the storage is full. */
import { isEmbedded } from './embed-address.js';

/** @param open returns the storage, or undefined to use memory only. It may throw, because reading `window.localStorage` may throw. */
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

/** Shared by all tabs. An embedded page stores nothing. */
export const browserStorage = storageWithFallback(() => (isEmbedded() ? undefined : localStorage));
/** Survives a reload, and ends when the tab is closed. */
export const tabStorage = storageWithFallback(() => sessionStorage);
