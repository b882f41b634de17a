/** Compares the headers of an answer with those that a relay sends under `/app/`. */
import { guardHeaders, pagePolicy } from '../../web/index.ts';

type Headers = NodeJS.Dict<string[]>;
type Policy = ReadonlyMap<string, ReadonlySet<string>>;

/** Headers that lead a page elsewhere, or have it load what its files do not name. */
const leading = ['link', 'refresh'] as const;

/**
 * Finds what differs, in words that follow a file's name.
 *
 * @param type media type that the file must have
 */
export function headerDifferences(headers: Headers, type: string): string[] {
  return [
    ...typeDifferences(headers, type),
    ...policyDifferences(headers),
    ...Object.entries(guardHeaders).flatMap(([name, expected]) => {
      const values = (headers[name] ?? []).map((value) => value.trim().toLowerCase());
      if (values.length === 0) return [`has no header ${name}: ${expected}`];
      const other = values.find((value) => value !== expected);
      return other === undefined ? [] : [`has the header ${name}: ${other}, not ${expected}`];
    }),
    ...leading
      .filter((name) => headers[name] !== undefined)
      .map((name) => `has the header ${name}, which a relay does not send`),
  ];
}

/** Media type and character set: both decide what a browser makes of the same bytes. */
export function typeDifferences(headers: Headers, expected: string): string[] {
  const [value = ''] = headers['content-type'] ?? [];
  const [type = '', charset] = parsedType(value);
  const [ownType = ''] = parsedType(expected);
  if (type !== ownType) return [`has the type ${type || 'none'}, not ${ownType}`];
  const isUtf8 = charset === undefined || charset === 'utf-8' || charset === 'utf8';
  return isUtf8 ? [] : [`has the character set ${charset}, not utf-8`];
}

function parsedType(value: string): [type: string, charset: string | undefined] {
  const [type = '', ...parameters] = value.toLowerCase().split(';');
  const charset = parameters
    .map((parameter) => parameter.split('='))
    .find(([name]) => name?.trim() === 'charset');
  return [type.trim(), charset?.[1]?.trim().replaceAll('"', '')];
}

const ownPolicy = parsePolicy(pagePolicy.join(';'));

/** A browser applies every policy: one that is equal makes the page at least as strict. */
function policyDifferences(headers: Headers): string[] {
  const policies = (headers['content-security-policy'] ?? [])
    .flatMap((value) => value.split(','))
    .map(parsePolicy);
  const [first = [], ...others] = policies.map(directiveDifferences);
  if (policies.length === 0) return ['has no header content-security-policy'];
  return others.some((each) => each.length === 0) ? [] : first;
}

/** Directives by name; of one that is repeated, the first applies (CSP Level 3 §2.2.1). */
function parsePolicy(text: string): Policy {
  const policy = new Map<string, ReadonlySet<string>>();
  for (const directive of text.split(';')) {
    const [name = '', ...sources] = directive.trim().split(/\s+/);
    const key = name.toLowerCase();
    if (key !== '' && !policy.has(key)) policy.set(key, new Set(sources));
  }
  return policy;
}

function directiveDifferences(policy: Policy): string[] {
  const where = 'in its content-security-policy';
  const missing = [...ownPolicy.keys()]
    .filter((name) => !policy.has(name))
    .map((name) => `has no ${name} ${where}`);
  const others = [...policy].flatMap(([name, sources]) => {
    const own = ownPolicy.get(name);
    if (own === undefined) return [`has ${name}, which a relay does not send, ${where}`];
    const added = [...sources.difference(own)];
    const gone = [...own.difference(sources)];
    return [
      ...(added.length > 0 ? [`has ${added.join(' ')} added to ${name} ${where}`] : []),
      ...(gone.length > 0 ? [`has no ${gone.join(' ')} in ${name} ${where}`] : []),
    ];
  });
  return [...missing, ...others];
}
