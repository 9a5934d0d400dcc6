/** Reads catalogs and price books, and writes small files that only their owner may read. */
import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import {
  addDimensions,
  addedDimensions,
  CatalogError,
  DEFAULT_PRICE_BOOK,
  PriceBook,
  PriceBookError,
  parseCatalog,
} from '@meterline/catalog';
import { StartError } from './start-error.js';

const OWNER_ONLY = 0o600;

/** Makes the dimensions of a catalog file known to this process. Call this before reading a price book. @throws CatalogError that names the file */
export async function loadCatalog(path: string | undefined): Promise<void> {
  if (path === undefined) return;
  try {
    addDimensions(parseCatalog(JSON.parse(await readFile(path, 'utf8'))));
  } catch (cause) {
    throw new CatalogError(`CATALOG ${path} cannot be used: ${reasonOf(cause)}`, { cause });
  }
}

/** Loads a price book, or the example book if there is no path. @param label names the file in errors @throws PriceBookError */
export async function loadPriceBook(path: string | undefined, label = `PRICE_BOOK ${path}`): Promise<PriceBook> {
  if (path === undefined) return exampleBook();
  try {
    return new PriceBook(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    throw new PriceBookError(
      `${label} cannot be used: ${reasonOf(cause)}; "meterline dimensions --example-book" prints a valid book`,
      { cause },
    );
  }
}

function exampleBook(): PriceBook {
  const added = addedDimensions().map(({ billingDimension }) => billingDimension);
  if (added.length === 0) return DEFAULT_PRICE_BOOK;
  throw new PriceBookError(
    `the example price book has no price for ${added.join(', ')}; set PRICE_BOOK to a price book that has`,
  );
}

/** Reads the catalog and the price book, which decide which events are accepted, and what they cost. @throws StartError */
export async function openPriceBook(env: {
  readonly CATALOG?: string | undefined;
  readonly PRICE_BOOK?: string | undefined;
}): Promise<PriceBook> {
  await openCatalog(env.CATALOG);
  return asStartError(loadPriceBook(env.PRICE_BOOK));
}

/** @throws StartError */
export function openCatalog(path: string | undefined): Promise<void> {
  return asStartError(loadCatalog(path));
}

async function asStartError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const isExpected = error instanceof PriceBookError || error instanceof CatalogError;
    throw isExpected ? new StartError(error.message, { cause: error }) : error;
  }
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** Replaces a file atomically and durably. If the disk is full, the old file stays and the temp file is removed. */
export async function writePrivateText(path: string, text: string): Promise<void> {
  const tempFile = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(tempFile, text, { mode: OWNER_ONLY, flag: 'wx', flush: true });
    await rename(tempFile, path);
  } catch (error) {
    await rm(tempFile, { force: true });
    throw error;
  }
}
