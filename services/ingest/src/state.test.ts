import { expect, it } from '@jest/globals';
import { StateMachine } from './state.js';

it('a state moves along the listed transitions only, and stays where it is at any other', () => {
  const state = new StateMachine<'open' | 'flushing' | 'stopped'>('batcher', 'open', {
    open: ['flushing', 'stopped'],
    flushing: ['open'],
    stopped: [],
  });
  expect(() => state.enter('open')).toThrow('the batcher cannot go from open to open');
  state.enter('flushing');
  expect(() => state.enter('flushing')).toThrow('the batcher cannot go from flushing to flushing');
  expect(() => state.enter('stopped')).toThrow('the batcher cannot go from flushing to stopped');
  expect(state.current).toBe('flushing');
  state.enter('open');
  state.enter('stopped');
  expect(() => state.enter('open')).toThrow('the batcher cannot go from stopped to open');
});
