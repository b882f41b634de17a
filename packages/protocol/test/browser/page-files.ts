/** Stands in for the readers of vector files inside a page, to which the texts were handed. */

interface HandedOver {
  /** Texts of our own vectors, by name. */
  readonly own: Readonly<Record<string, string>>;
  /** Published vectors, parsed, by name; empty where there are none. */
  readonly published: Readonly<Record<string, unknown>>;
}

const { own, published } = (globalThis as unknown as { handedOver: HandedOver }).handedOver;

export function ownVectorTexts(): Map<string, string> {
  return new Map(Object.entries(own));
}

export function readVectorFile(name: string): unknown {
  return published[name];
}
