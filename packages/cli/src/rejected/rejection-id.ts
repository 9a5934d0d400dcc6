import type { RejectionId } from '@meterline/warehouse';

const ID = /^([0-9a-z]{1,9})-([0-9a-z]{1,13})$/;
const MAX_FINGERPRINT = 2n ** 64n;

/** A refusal's id as people see it: the time of receipt and the fingerprint, both in base 36. Times sort as ids do. */
export function formatRejectionId({ receivedAt, fingerprint }: RejectionId): string {
  return `${receivedAt.toString(36)}-${fingerprint.toString(36)}`;
}

/** Undefined when it is no such id. */
export function parseRejectionId(text: string): RejectionId | undefined {
  const [, time, hash] = ID.exec(text) ?? [];
  if (time === undefined || hash === undefined) return undefined;
  const fingerprint = [...hash].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n);
  return fingerprint < MAX_FINGERPRINT ? { receivedAt: Number.parseInt(time, 36), fingerprint } : undefined;
}
