import { describe, expect, test } from 'vitest';
import { Tracking } from './tracking.ts';
import { hasTestFile, vectorNames } from './vector-files.ts';

const names = vectorNames();

describe('published vectors', () => {
  if (names === undefined) {
    test.skip('skipped: POSTHOUSE_INTEROP_VECTORS is not set', () => {});
    return;
  }
  test('the folder has vector files', () => {
    expect(names).not.toEqual([]);
  });
  test.each(names)('%s.json has a test file', (name) => {
    expect(hasTestFile(name)).toBe(true);
  });
});

describe('tracking of what was read', () => {
  const value = () => ({
    scope: 'metadata',
    a: { b: [1, { c: 2, empty: [] }], name: 'x' },
    'd/~': { e: null },
  });
  const open = () => {
    const tracking = new Tracking(value());
    return { tracking, data: tracking.data as ReturnType<typeof value> };
  };

  test('nothing read: the root is named', () => {
    expect(open().tracking.unread()).toEqual(['/']);
  });

  test('a part of which nothing was read is named once, a part read is not', () => {
    const { tracking, data } = open();
    expect(data.a.b[0]).toBe(1);
    expect(tracking.unread()).toEqual(['/a/b/1', '/d~1~0']);
  });

  test('touching an object or an array does not count for what is in it', () => {
    const { tracking, data } = open();
    expect(data.a.b.length).toBe(2);
    expect([...data.a.b].length).toBe(2);
    expect(tracking.unread()).toEqual(['/a/b/1', '/d~1~0']);
  });

  test('reading everything leaves nothing, and equals the plain value', () => {
    const { tracking, data } = open();
    expect(JSON.stringify(data)).toBe(JSON.stringify(value()));
    expect(tracking.unread()).toEqual([]);
  });

  test('a pointer leads to the same view; one that leads nowhere fails', () => {
    const { tracking, data } = open();
    expect(tracking.resolve('/a/b')).toBe(data.a.b);
    expect(tracking.resolve('/d~1~0/e')).toBe(null);
    expect(() => tracking.resolve('/a/x')).toThrow('nothing at /a/x');
    expect(tracking.unread()).toEqual(['/a']);
  });

  test('the value cannot be written to', () => {
    const { data } = open();
    expect(() => {
      data.a.name = 'y';
    }).toThrow(TypeError);
  });
});
