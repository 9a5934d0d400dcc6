import { describe, expect, it } from '@jest/globals';
import { uuidV5 } from './uuid-v5.js';

const DNS_NAMESPACE = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';

describe('UUIDv5', () => {
  it('gives the example of RFC 9562, appendix A.4', () => {
    expect(uuidV5(DNS_NAMESPACE, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2');
  });
});
