import { describe, expect, test } from 'vitest';
import {
  isMethodName,
  type MethodDefinition,
  methodPath,
  methods,
  notifications,
} from '../../src/index.ts';
import { namedRows } from './chapters.ts';

const base = namedRows('01-foundations.md', '## 18. Method and notification index');
const transport = namedRows('02-transport-and-sessions.md', '## 14. Method index');
const groups = namedRows('05-groups.md', '### 13.1 Table');
const channels = namedRows('06-channels.md', '## 8. Methods');
const definitions: Readonly<Record<string, MethodDefinition>> = methods;

/** The verbs of a table cell; none for `—` and `none`. */
const verbsOf = (cell: string) => cell.match(/\b(?:GET|POST|PUT|PATCH|DELETE)\b/g) ?? [];
/** The session rule of a table cell. */
const sessionOf = (cell: string) => (/^device or account/.test(cell) ? 'any' : cell);
const definitionOf = (name: string): MethodDefinition => {
  const definition = definitions[name];
  if (definition === undefined) throw new Error(`the catalogue has no ${name}`);
  return definition;
};

describe('the catalogue of methods', () => {
  test('01 §18, 05 §13, 06 §8: it has exactly the methods of the chapters', () => {
    const methodRows = base.filter((row) => row.length === 4);
    const names = [...methodRows, ...groups, ...channels].map(([name]) => name);
    expect(Object.keys(methods).sort()).toEqual(names.sort());
  });

  test('every entry is listed under its own name', () => {
    for (const [name, { name: own }] of Object.entries(definitions)) expect(own).toBe(name);
  });

  test.each(base.filter((row) => row.length === 4))(
    '01 §18: %s has verbs %s and session',
    (name, verbs, _wss, session) => {
      const definition = definitionOf(name as string);
      expect([...definition.http]).toEqual(verbsOf(verbs as string));
      expect(definition.session).toBe(sessionOf(session as string));
      expect(definition.capability).toBeUndefined();
    },
  );

  test.each(transport)(
    '02 §14: %s has verbs %s, path %s, session and result',
    (name, verbs, path, session, ok) => {
      const definition = definitionOf(name as string);
      expect([...definition.http]).toEqual(verbsOf(verbs as string));
      if (path !== 'WSS only') expect(methodPath(name as string)).toBe(path);
      expect(definition.session).toBe(sessionOf(session as string));
      expect(definition.result === null).toBe(ok !== '200');
    },
  );

  test.each(groups)('05 §13: %s is %s %s with result %s', (name, verbs, path, ok) => {
    const definition = definitionOf(name as string);
    expect([...definition.http]).toEqual(verbsOf(verbs as string));
    if (path !== 'WSS only') expect(methodPath(name as string)).toBe(path);
    expect(definition.result === null).toBe(ok !== '200');
    expect(definition).toMatchObject({ session: 'device', capability: 'group.host.v1' });
  });

  test.each(channels)('06 §8: %s is %s %s with result', (name, verbs, path, _wss, ok) => {
    const definition = definitionOf(name as string);
    expect([...definition.http]).toEqual(verbsOf(verbs as string));
    if (path !== 'none') expect(methodPath(name as string)).toBe(path);
    expect(definition.result === null).toBe(ok !== '200');
    expect(definition).toMatchObject({ session: 'device', capability: 'channel.host.v1' });
  });

  test('02 §12.2: it has exactly the notifications of the index, with their parameters', () => {
    const rows = namedRows('02-transport-and-sessions.md', '### 12.2 Index');
    const index = Object.fromEntries(
      rows.map(([name, params = '']) => [
        name,
        Object.fromEntries(
          [...params.matchAll(/(\w+) (string|integer)/g)].map((m) => [m[1], m[2]]),
        ),
      ]),
    );
    const own = Object.fromEntries(
      Object.entries(notifications).map(([name, { params }]) => [
        name,
        Object.fromEntries(
          Object.entries(params.properties).map(([key, schema]) => [key, schema.type]),
        ),
      ]),
    );
    expect(own).toEqual(index);
    for (const { params } of Object.values(notifications)) {
      expect([...params.required].sort()).toEqual(Object.keys(params.properties).sort());
    }
  });

  test('02 §2.4: parameters of every GET form are scalars, unless the query refuses them', () => {
    for (const { name, http, params, queryRefuses } of Object.values(definitions)) {
      if (!http.includes('GET')) continue;
      const { properties = {} } = params as { properties?: Record<string, { type?: string }> };
      for (const [key, { type }] of Object.entries(properties)) {
        if (queryRefuses?.includes(key)) continue;
        expect([name, key, type]).toEqual([
          name,
          key,
          expect.stringMatching(/^(string|integer|boolean)$/),
        ]);
      }
    }
  });

  test('a method name matches completely and by case', () => {
    expect(isMethodName('relay.info')).toBe(true);
    for (const name of [
      'Relay.info',
      'relay',
      'relay.info ',
      'relay/info',
      'toString',
      '',
      'device.status',
    ]) {
      expect(isMethodName(name)).toBe(false);
    }
  });

  test('02 §2.1: the path keeps the case of every segment', () => {
    expect(methodPath('relay.info')).toBe('/relay/info');
    expect(methodPath('group.secret.rotation.prepare')).toBe('/group/secret/rotation/prepare');
    expect(methodPath('a.bC.d')).toBe('/a/bC/d');
  });
});
