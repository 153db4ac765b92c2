//! `#[tool]` for atomic-plugin-api: a tool from a function and its types.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::{
    DeriveInput, Error, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitBool, LitInt, LitStr, Meta, Result,
    ReturnType, Token, Type,
    parse::{Parse, ParseStream},
    parse_macro_input,
    spanned::Spanned,
};

/// Makes a tool of a function.
///
/// ```ignore
/// #[params]
/// struct GreetParams {
///     /// Whom to greet.
///     name: String,
/// }
///
/// /// Greets someone.
/// #[tool]
/// async fn greet(params: GreetParams, ctx: ToolContext) -> Result<ToolResult> {
///     Ok(ToolResult::text(format!("Hello {}!", params.name)))
/// }
///
/// pi.register_tool(greet());
/// ```
///
/// The function becomes a constructor of the same name, `fn greet() -> Tool`. Its first
/// parameter is the type of the arguments, its second (optional) a `ToolContext`. A type
/// that is also `Serialize` (as `#[params]` makes it) can be read by gates, of other crates
/// too: `event.input_as::<GreetParams>()`; say `input` to have `ToolInput` implemented for it.
///
/// | key | what |
/// |---|---|
/// | `description = ".."` | default: the documentation of the function |
/// | `name = ".."` | default: that of the function |
/// | `label = ".."` | what the user sees |
/// | `prompt_snippet = ".."` | the line in the system prompt |
/// | `prompt_guideline = ".."` | a bullet there, may be repeated |
/// | `max_result_size_chars = N` | see `ToolBuilder` |
/// | `sequential`, `exclusive` | see `ToolBuilder` |
/// | `input` | implements `ToolInput` for the type of the arguments |
#[proc_macro_attribute]
pub fn tool(attr: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(attr as Options);
    let function = parse_macro_input!(item as ItemFn);
    expand(options, function).unwrap_or_else(Error::into_compile_error).into()
}

/// Makes a struct or enum fit for the arguments of a tool: derives `Serialize`,
/// `Deserialize` and `JsonSchema` without the author's crate depending on serde or
/// schemars. Doc comments become what the model is told; attributes of serde and schemars
/// work as ever. `#[params(tool = "greet")]` implements `ToolInput` too.
#[proc_macro_attribute]
pub fn params(attr: TokenStream, item: TokenStream) -> TokenStream {
    let tool = parse_macro_input!(attr as ToolName).0;
    let item = parse_macro_input!(item as DeriveInput);
    let ident = &item.ident;
    let input = tool.map(|name| {
        let (generics, types, bounds) = item.generics.split_for_impl();
        quote! {
            impl #generics ::atomic_plugin_api::protocol::tool::ToolInput for #ident #types #bounds {
                const TOOL: &'static str = #name;
            }
        }
    });
    quote! {
        #[derive(
            ::atomic_plugin_api::__private::serde::Serialize,
            ::atomic_plugin_api::__private::serde::Deserialize,
            ::atomic_plugin_api::__private::schemars::JsonSchema,
        )]
        #[serde(crate = "::atomic_plugin_api::__private::serde")]
        #[schemars(crate = "::atomic_plugin_api::__private::schemars")]
        #item
        #input
    }
    .into()
}

struct ToolName(Option<LitStr>);

impl Parse for ToolName {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.is_empty() {
            return Ok(ToolName(None));
        }
        let key: Ident = input.parse()?;
        if key != "tool" {
            return Err(Error::new(key.span(), "write `#[params]` or `#[params(tool = \"name\")]`"));
        }
        input.parse::<Token![=]>()?;
        Ok(ToolName(Some(input.parse()?)))
    }
}

#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    description: Option<LitStr>,
    input: bool,
    /// Calls on the builder, in their order.
    calls: Vec<Tokens>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Options::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let value = |input: ParseStream<'_>| -> Result<LitStr> {
                input
                    .parse::<Token![=]>()
                    .map_err(|e| Error::new(e.span(), format!("write `{key} = \"..\"`")))?;
                input.parse::<LitStr>().map_err(|e| Error::new(e.span(), format!("`{key}` takes a string")))
            };
            match key.to_string().as_str() {
                "name" => options.name = Some(value(input)?),
                "description" => options.description = Some(value(input)?),
                "label" | "prompt_snippet" | "prompt_guideline" => {
                    let text = value(input)?;
                    options.calls.push(quote!(.#key(#text)));
                }
                "max_result_size_chars" => {
                    input.parse::<Token![=]>()?;
                    let n: LitInt = input.parse()?;
                    options.calls.push(quote!(.#key(#n)));
                }
                "sequential" | "exclusive" | "input" => {
                    let on = if input.peek(Token![=]) {
                        input.parse::<Token![=]>()?;
                        input.parse::<LitBool>()?.value
                    } else {
                        true
                    };
                    match (on, key == "input") {
                        (on, true) => options.input = on,
                        (true, false) => options.calls.push(quote!(.#key())),
                        (false, false) => {}
                    }
                }
                other => {
                    return Err(Error::new(
                        key.span(),
                        format!(
                            "unknown key `{other}`: #[tool] knows name, description, label, prompt_snippet, \
                             prompt_guideline, max_result_size_chars, sequential, exclusive, input"
                        ),
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// The documentation of the function, as one text.
fn documentation(function: &ItemFn) -> String {
    let lines: Vec<String> = function
        .attrs
        .iter()
        .filter_map(|a| match &a.meta {
            Meta::NameValue(nv) if nv.path.is_ident("doc") => match &nv.value {
                Expr::Lit(ExprLit { lit: Lit::Str(s), .. }) => Some(s.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    lines.join("\n").trim().to_owned()
}

fn argument(arg: &FnArg) -> Result<&Type> {
    match arg {
        FnArg::Typed(t) => match &*t.ty {
            Type::Reference(r) => {
                Err(Error::new(r.span(), "a tool takes its arguments by value: write the type without `&`"))
            }
            ty => Ok(ty),
        },
        FnArg::Receiver(r) => Err(Error::new(
            r.span(),
            "#[tool] goes on a free function; a tool with state is `Tool::new(..).run(move |call, ctx| ..)`",
        )),
    }
}

fn expand(options: Options, mut function: ItemFn) -> Result<Tokens> {
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        return Err(Error::new(sig.fn_token.span(), "a tool is an `async fn`"));
    }
    if !sig.generics.params.is_empty() {
        return Err(Error::new(
            sig.generics.span(),
            "a tool has no generic parameters: the model calls one type",
        ));
    }
    if matches!(sig.output, ReturnType::Default) {
        return Err(Error::new(
            sig.paren_token.span.close(),
            "a tool answers something: write `-> Result<ToolResult>`",
        ));
    }
    let mut inputs = sig.inputs.iter();
    let Some(params) = inputs.next() else {
        return Err(Error::new(
            sig.paren_token.span.join(),
            "a tool takes its arguments as a type: `(params: MyParams, ctx: ToolContext)`; \
             for no arguments use a struct without fields",
        ));
    };
    let params = argument(params)?.clone();
    let takes_ctx = match inputs.next() {
        Some(ctx) => argument(ctx).map(|_| true)?,
        None => false,
    };
    if let Some(third) = inputs.next() {
        return Err(Error::new(third.span(), "a tool takes its arguments and a `ToolContext`, nothing else"));
    }
    let description = match options.description {
        Some(d) => d.value(),
        None => documentation(&function),
    };
    if description.trim().is_empty() {
        return Err(Error::new(
            sig.ident.span(),
            "the model must be told what the tool does: write `#[tool(description = \"..\")]` or a doc comment",
        ));
    }
    let constructor = sig.ident.clone();
    let name = options.name.map_or_else(|| constructor.to_string(), |n| n.value());
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let docs: Vec<_> = function.attrs.iter().filter(|a| a.path().is_ident("doc")).cloned().collect();
    function.attrs.retain(|a| !a.path().is_ident("doc"));
    let body = format_ident!("__{}_body", constructor);
    function.sig.ident = body.clone();
    let call = if takes_ctx { quote!(#body(call.params, ctx)) } else { quote!(#body(call.params)) };
    let calls = options.calls;
    let input = options.input.then(|| {
        quote! {
            impl ::atomic_plugin_api::protocol::tool::ToolInput for #params {
                const TOOL: &'static str = #name;
            }
        }
    });
    let fallback = docs.is_empty().then(|| {
        let text = format!("The tool `{name}`.");
        quote!(#[doc = #text])
    });
    Ok(quote! {
        #(#docs)*
        #fallback
        #visibility fn #constructor() -> ::atomic_plugin_api::Tool {
            #function
            ::atomic_plugin_api::Tool::new(#name, #description)
                .params::<#params>()
                #(#calls)*
                .run(|call, ctx| {
                    let _ = &ctx;
                    async move { #call.await }
                })
        }
        #input
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(options: Tokens, function: Tokens) -> String {
        let options = match syn::parse2::<Options>(options) {
            Ok(o) => o,
            Err(e) => return e.to_string(),
        };
        expand(options, syn::parse2(function).unwrap()).map_or_else(|e| e.to_string(), |t| t.to_string())
    }

    #[test]
    fn what_cannot_be_a_tool_is_told_what_to_write() {
        let described = || quote!(description = "d");
        let good = quote!(
            async fn f(p: P, ctx: ToolContext) -> Result<ToolResult> {}
        );
        for (options, function, want) in [
            (quote!(), good.clone(), "write `#[tool(description"),
            (quote!(descripton = "d"), good.clone(), "unknown key `descripton`: #[tool] knows name"),
            (quote!(description), good.clone(), "write `description = \"..\"`"),
            (quote!(label = 3), good, "`label` takes a string"),
            (
                described(),
                quote!(
                    fn f(p: P) -> Result<ToolResult> {}
                ),
                "a tool is an `async fn`",
            ),
            (
                described(),
                quote!(
                    async fn f() -> R {}
                ),
                "takes its arguments as a type",
            ),
            (
                described(),
                quote!(
                    async fn f(p: &P) -> R {}
                ),
                "by value",
            ),
            (
                described(),
                quote!(
                    async fn f(&self, p: P) -> R {}
                ),
                "goes on a free function",
            ),
            (
                described(),
                quote!(
                    async fn f(p: P, c: C, x: X) -> R {}
                ),
                "nothing else",
            ),
            (
                described(),
                quote!(
                    async fn f(p: P) {}
                ),
                "-> Result<ToolResult>",
            ),
            (
                described(),
                quote!(
                    async fn f<T>(p: T) -> R {}
                ),
                "no generic parameters",
            ),
        ] {
            let got = message(options, function);
            assert!(got.contains(want), "{got:?} does not say {want:?}");
        }
    }
}
