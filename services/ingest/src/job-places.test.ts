import { describe, expect, it } from '@jest/globals';
import { MAX_JOB_BYTES } from '@meterline/catalog';
import { JobPlaces } from './job-places.js';

function openPlaces(concurrency = 100) {
  return new JobPlaces({ concurrency: () => concurrency, maxBytesInWork: () => 1_000_000 });
}

describe('JobPlaces', () => {
  it('has few places before any job is begun, and two more for each that is', () => {
    const places = openPlaces();
    expect(places.now).toBe(16);
    places.begun();
    expect(places.now).toBe(18);
    for (let job = 0; job < 200; job += 1) places.begun();
    expect(places.now).toBe(100);
  });

  it('has few places more than jobs in work after the queue was empty', () => {
    const places = openPlaces();
    for (let job = 0; job < 60; job += 1) places.begun();
    for (let job = 0; job < 50; job += 1) places.ended();
    places.foundNoMore();
    expect(places.now).toBe(26);
  });

  it('keeps the shares of all places while there are few', () => {
    expect(openPlaces().most).toBe(100);
  });

  it('has never more places than its concurrency', () => {
    expect(openPlaces(3).now).toBe(3);
  });

  it('has as many places as there is room for data of the typical size, two at least', () => {
    const places = openPlaces();
    places.taken(20_000);
    expect(places.most).toBe(50);
    places.taken(10_000_000);
    expect(places.most).toBe(2);
    expect(places.now).toBe(2);
  });

  it('forgets a large job after some hundred small ones, and does not count one that passes in pieces', () => {
    const places = openPlaces();
    places.taken(MAX_JOB_BYTES + 1);
    expect(places.most).toBe(100);
    places.taken(1_000_000);
    for (let job = 0; job < 500; job += 1) places.taken(1_000);
    expect(places.most).toBe(100);
  });
});
