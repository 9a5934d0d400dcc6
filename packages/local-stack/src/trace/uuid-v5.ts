import { createHash } from 'node:crypto';

/** Namespace of names that are URLs. Source: RFC 9562 §6.6. */
export const URL_NAMESPACE = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';

const VERSION_5 = 0x50;
const VARIANT_RFC_9562 = 0x80;

/**
 * The UUID of a name within a namespace, the same every time: SHA-1 of both, with version and variant set.
 * Source: RFC 9562 §5.5. Ten lines over node:crypto, hence no dependency.
 */
export function uuidV5(namespace: string, name: string): string {
  const digest = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name, 'utf8')
    .digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | VERSION_5, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | VARIANT_RFC_9562, 8);
  const hex = digest.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}
