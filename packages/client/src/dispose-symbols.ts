/**
 * Gives `Symbol.dispose` and `Symbol.asyncDispose` to engines that lack them (WebKit). Imported first
 * by the entries for pages: classes name their methods with these symbols when they are defined.
 */
for (const name of ['dispose', 'asyncDispose']) {
  // Registered symbols: compilers of `using` fall back to the same ones.
  if (!(name in Symbol))
    Object.defineProperty(Symbol, name, { value: Symbol.for(`Symbol.${name}`) });
}
