import { expect, it } from '@jest/globals';
import { storageWithFallback } from './storage.js';

/** A browser's storage over a Map; `setItem` throws when `isFull`. */
function browserStorage(isFull = false): { kept: Map<string, string>; storage: Storage } {
  const kept = new Map<string, string>();
  const storage: Storage = {
    length: 0,
    key: () => null,
    clear: () => kept.clear(),
    getItem: (name) => kept.get(name) ?? null,
    removeItem: (name) => void kept.delete(name),
    setItem(name, value) {
      if (isFull) throw new DOMException('no room', 'QuotaExceededError');
      kept.set(name, value);
    },
  };
  return { kept, storage };
}

function blocked(): Storage {
  throw new DOMException('Access is denied for this document.', 'SecurityError');
}

const remembers = (storage: ReturnType<typeof storageWithFallback>) => {
  expect(storage.getItem('theme')).toBeNull();
  storage.setItem('theme', 'dark');
  expect(storage.getItem('theme')).toBe('dark');
  storage.removeItem('theme');
  expect(storage.getItem('theme')).toBeNull();
};

it.each([
  ['blocked', blocked],
  ['full', () => browserStorage(true).storage],
  ['missing', () => undefined],
  ['usable', () => browserStorage().storage],
])('a storage that is %s remembers values for the life of the page', (_state, open) => {
  remembers(storageWithFallback(open));
});

it('a usable storage keeps values for the next page, and forgets those that are removed', () => {
  const { kept, storage } = browserStorage();
  const wrapped = storageWithFallback(() => storage);
  wrapped.setItem('theme', 'dark');
  expect(storageWithFallback(() => storage).getItem('theme')).toBe('dark');
  wrapped.removeItem('theme');
  expect(kept.size).toBe(0);
});
