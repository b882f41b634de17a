/**
 * A view of parsed JSON that remembers which values were read, so that a vector file cannot be
 * passed by leaving half of it out.
 */

/** Names whose scalar values describe a vector and take no part in it. */
const metadata = new Set(['comment', 'description', 'name', 'note', 'provenance', 'reason']);
metadata.add('scope').add('protocol_version');

export class Tracking {
  readonly #root: unknown;
  readonly #read = new Set<string>();
  readonly #views = new Map<string, object>();

  constructor(root: unknown) {
    this.#root = root;
  }

  /** The root as a view: reads like the value itself, at any depth. */
  get data(): unknown {
    return this.#view(this.#root, '');
  }

  /**
   * The view at a JSON pointer, as the `…_ref` members of the vectors have it.
   * @throws Error where nothing stands there
   */
  resolve(pointer: string): unknown {
    let value = this.data;
    for (const part of pointer.split('/').slice(1)) {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) {
        throw new Error(`nothing at ${pointer}`);
      }
      value = (value as Record<string, unknown>)[name];
    }
    return value;
  }

  /**
   * JSON pointers of everything that was not read: scalars, empty arrays and empty objects. A part of
   * the tree of which nothing was read is named once. Scalars of metadata are exempt.
   */
  unread(): string[] {
    const found = this.#unreadBelow(this.#root, '');
    return found === 'all' ? ['/'] : found;
  }

  #view(value: unknown, pointer: string): unknown {
    if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) {
      this.#read.add(pointer);
      return value;
    }
    const known = this.#views.get(pointer);
    if (known !== undefined) return known;
    const view = new Proxy(value, {
      get: (target, name) => {
        const member = Reflect.get(target, name) as unknown;
        if (typeof name === 'symbol' || !Object.hasOwn(target, name)) return member;
        if (Array.isArray(target) && name === 'length') return member;
        return this.#view(member, `${pointer}/${escapePointer(name)}`);
      },
      set: () => false,
      deleteProperty: () => false,
    });
    this.#views.set(pointer, view);
    return view;
  }

  #unreadBelow(value: unknown, pointer: string): string[] | 'all' {
    const names = typeof value === 'object' && value !== null ? Object.keys(value) : [];
    if (names.length === 0) return this.#read.has(pointer) ? [] : 'all';
    const found: string[] = [];
    let whole = true;
    for (const name of names) {
      const member = (value as Record<string, unknown>)[name];
      const exempt = metadata.has(name) && (typeof member !== 'object' || member === null);
      if (exempt) continue;
      const at = `${pointer}/${escapePointer(name)}`;
      const below = this.#unreadBelow(member, at);
      if (below === 'all') {
        found.push(at);
      } else {
        whole = false;
        found.push(...below);
      }
    }
    return whole && found.length > 0 ? 'all' : found;
  }
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
