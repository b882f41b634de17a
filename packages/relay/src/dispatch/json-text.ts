/** Canonical text of a stored protocol object. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * A response object, or parameters for another relay. {@link JsonText} anywhere in it is sent as it
 * is, neither parsed nor rewritten.
 */
export type ResultValue =
  | null
  | boolean
  | number
  | string
  | JsonText
  | readonly ResultValue[]
  | { readonly [name: string]: ResultValue | undefined };
