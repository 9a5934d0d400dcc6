import { describe, expect, it } from '@jest/globals';
import { payloadOf, payloadReference, referencedPosition } from './rejected-payload.js';

describe('the payload of a refused event', () => {
  it('is its JSON text', () => {
    expect(payloadOf({ usage: -1, text: 'é' })).toBe('{"usage":-1,"text":"é"}');
  });

  it('tells a number beyond all doubles in words', () => {
    expect(payloadOf(JSON.parse('{"usage":1e999,"other":[-1e999]}'))).toBe(
      '{"usage":"Infinity","other":["-Infinity"]}',
    );
  });

  it('cannot be written when it is nested deeper than the stack', () => {
    expect(payloadOf(JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`))).toBeUndefined();
  });
});

describe('a reference to the payload that holds the whole job', () => {
  it('is JSON and names its position', () => {
    expect(JSON.parse(payloadReference(4_999))).toBe('see the payload of position 4999 of this job');
    expect(referencedPosition(payloadReference(4_999))).toBe(4_999);
  });

  it.each(['{}', '""', 'see the payload of position 1 of this job', '"see the payload of position x of this job"'])(
    'is not read into %s',
    (payload) => expect(referencedPosition(payload)).toBeUndefined(),
  );
});
