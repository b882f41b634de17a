/** What must hold of every tree, whatever the body: an independent reading of the rules. */
import type { BodyTree } from '../../src/content/index.ts';

type Loose = { readonly kind?: unknown; readonly [member: string]: unknown };

/** Members of each kind, and whether its children are inline nodes. There is no other kind. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  paragraph: ['children'],
  heading: ['level', 'children'],
  quote: ['children'],
  list: ['start', 'tight', 'items'],
  code_block: ['text', 'language'],
  rule: [],
  source_block: ['text'],
  plain: ['text'],
  text: ['text'],
  code: ['text'],
  emphasis: ['children'],
  strong: ['children'],
  break: [],
  link: ['url', 'host', 'image', 'children'],
  attachment: ['index', 'image', 'children'],
  blocked: ['reason', 'target', 'image', 'children'],
  source: ['text'],
};

const forbidden = /[\u202a-\u202e\u2066-\u2069\u2028\u2029\p{Cs}]|(?![\n\t])\p{Cc}/u;

/** Returns what is wrong with a tree: unknown kinds or members, unsafe URLs, texts, and sizes. */
export function faultsOf(tree: BodyTree, attachments: number): string[] {
  const faults: string[] = [];
  let nodes = 0;
  let deepest = 0;
  const waiting: { node: Loose; depth: number; isInLink: boolean }[] = [];
  const push = (values: unknown, depth: number, isInLink: boolean) => {
    if (!Array.isArray(values)) faults.push('children that are no array');
    else for (const node of values) waiting.push({ node, depth, isInLink });
  };
  push(tree.blocks, 1, false);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, depth, isInLink } = next;
    nodes += 1;
    deepest = Math.max(deepest, depth);
    const members = kinds[String(node.kind)];
    if (members === undefined) {
      faults.push(`kind ${String(node.kind)}`);
      continue;
    }
    for (const [name, value] of Object.entries(node)) {
      if (name !== 'kind' && !members.includes(name)) faults.push(`${node.kind}.${name}`);
      if (typeof value === 'string' && forbidden.test(value))
        faults.push(`${node.kind}.${name}: raw`);
    }
    if (node.kind === 'link') faults.push(...linkFaults(node, isInLink));
    if (node.kind === 'attachment' && !((node.index as number) < attachments)) faults.push('index');
    if (node.children !== undefined)
      push(node.children, depth + 1, isInLink || node.kind === 'link');
    for (const item of (node.items ?? []) as unknown[]) push(item, depth + 2, isInLink);
  }
  if (nodes > 20_000) faults.push(`${nodes} nodes`);
  if (deepest > 40) faults.push(`${deepest} levels`);
  return faults;
}

function linkFaults({ url, host }: Loose, isInLink: boolean): string[] {
  const parsed = new URL(String(url));
  const faults = isInLink ? ['a link in a link'] : [];
  if (!['http:', 'https:', 'mailto:'].includes(parsed.protocol)) faults.push(String(url));
  if (!/^[!-~]+$/.test(String(url)) || !/^[!-~]+$/.test(String(host))) faults.push('not ASCII');
  if (parsed.username !== '' || parsed.password !== '') faults.push('a user name');
  const led = parsed.protocol === 'mailto:' ? parsed.pathname.split('@')[1] : parsed.host;
  if (led !== host || (parsed.protocol === 'mailto:' && parsed.search !== '')) faults.push('host');
  return faults;
}
