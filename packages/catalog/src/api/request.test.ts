import { describe, expect, it } from '@jest/globals';
import { API_VERSIONS, hasPaginatedLists, isApiVersion } from './request.js';

describe('API versions', () => {
  it('are exactly these two', () => {
    expect(API_VERSIONS).toEqual(['2026-04-16', '2026-04-28']);
  });

  it.each(['2026-04-28.preview', '2026-04-17', '', ' 2026-04-16', '2026-04-16 ', 'latest', 'length'])(
    '%j is not valid',
    (version) => {
      expect(isApiVersion(version)).toBe(false);
    },
  );

  it('have paginated lists from 2026-04-28 on', () => {
    expect(API_VERSIONS.map(hasPaginatedLists)).toEqual([false, true]);
  });
});
