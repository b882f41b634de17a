/** The policy of the page stands in several places; they say the same. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');

test('the examples for other hosts have the policy of the page and the relay, each rule of it', () => {
  const [, ofPage = ''] =
    /Content-Security-Policy" content="([^"]+)"/.exec(read('../src/index.html')) ?? [];
  expect(ofPage).toContain("default-src 'none'");
  const readme = read('../README.md');
  const given = [...readme.matchAll(/content-security-policy "([^"]+)"/g)].map(
    ([, policy]) => policy,
  );
  const relay = read('../../relay/src/web/page-headers.ts');
  expect(given).toHaveLength(2);
  for (const policy of given) {
    const rules = (policy ?? '').split('; ');
    expect(rules.filter((rule) => rule !== "frame-ancestors 'none'")).toEqual(ofPage.split('; '));
    for (const rule of rules) expect(relay).toContain(rule);
  }
});
