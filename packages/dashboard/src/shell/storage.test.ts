import { expect, it } from '@jest/globals';
import { storageWithFallback } from './storage.js';

/** A storage of a browser in a Map. @param isFull makes `setItem` throw */
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
])('with a storage that is %s, values stay until the page is closed', (_state, open) => {
  remembers(storageWithFallback(open));
});

it('a usable storage keeps values for the next page until they are removed', () => {
  const { kept, storage } = browserStorage();
  const wrapped = storageWithFallback(() => storage);
  wrapped.setItem('theme', 'dark');
  expect(storageWithFallback(() => storage).getItem('theme')).toBe('dark');
  wrapped.removeItem('theme');
  expect(kept.size).toBe(0);
});
