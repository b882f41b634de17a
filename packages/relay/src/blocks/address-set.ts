import { type AddressRange, readRange } from './address-range.ts';

/** Networks of one family, by the length of their prefix and by their bits. */
type ByLength = Map<number, Map<bigint, number>>;

/**
 * Blocked networks, with the end of each block. A look-up asks one map for each length of prefix that
 * occurs, so its cost does not rise with the number of networks.
 */
export class AddressSet {
  readonly #families: Readonly<Record<4 | 6, ByLength>> = { 4: new Map(), 6: new Map() };

  get isEmpty(): boolean {
    return this.#families[4].size === 0 && this.#families[6].size === 0;
  }

  /** @param endsAt Unix seconds, or infinity */
  add({ family, network, length }: AddressRange, endsAt: number): void {
    const networks = this.#families[family].get(length) ?? new Map<bigint, number>();
    networks.set(network, endsAt);
    this.#families[family].set(length, networks);
  }

  /**
   * Whether a network holds an address now.
   * @param address as `addressKey` writes it: IPv4, or the /64 of IPv6
   */
  has(address: string, now: number): boolean {
    if (this.isEmpty) return false;
    const range = readRange(address);
    if (range === undefined) return false;
    const bits = range.family === 4 ? 32 : 128;
    for (const [length, networks] of this.#families[range.family]) {
      const rest = BigInt(bits - length);
      const endsAt = networks.get((range.network >> rest) << rest);
      if (endsAt !== undefined && now < endsAt) return true;
    }
    return false;
  }
}
