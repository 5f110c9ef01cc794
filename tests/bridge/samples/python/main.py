from greeting import greet

text = "ää 你好 😀"; length = greet(text)
print(length)
